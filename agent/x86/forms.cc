#include "agent/x86/forms.h"

namespace classaccess {
namespace {

constexpr uint8_t L = kFormLegacy, V = kFormVex, E = kFormEvex;
constexpr uint8_t LV = L | V, VE = V | E, LVE = L | V | E;
constexpr OpcodeMap M1 = OpcodeMap::k1Byte, M0F = OpcodeMap::k0F, M38 = OpcodeMap::k0F38, M3A = OpcodeMap::k0F3A,
                    M5 = OpcodeMap::kMap5, M6 = OpcodeMap::kMap6;
constexpr Prefix NP = Prefix::kNone, P66 = Prefix::k66, PF3 = Prefix::kF3, PF2 = Prefix::kF2, AN = Prefix::kAny;
constexpr int8_t _ = -1;
constexpr FormOp LD = FormOp::kLoad, STO = FormOp::kStore, RMW = FormOp::kRmw, NO = FormOp::kNone;
constexpr uint8_t OSZ = kSizeOperand, YSZ = kSizeWide, STK = kSizeStack, VL = kSizeVector, VL2 = kSizeHalf,
                  VL4 = kSizeQuarter, VL8 = kSizeEighth, EL = kSizeElement, DUP = kSizeDup, B512 = kSize512;
constexpr uint8_t EW = kElement4or8, EB = kElement1or2;
constexpr FormTouch WH = FormTouch::kWhole, LN = FormTouch::kLanes, BC = FormTouch::kBroadcastLanes,
                    PK = FormTouch::kPacked, IX = FormTouch::kIndexed, VM = FormTouch::kVectorMask,
                    BM = FormTouch::kByteMask, BT = FormTouch::kBitString;
constexpr Execute EM = Execute::kEmulate, SP = Execute::kStep;

constexpr Form kTable[] = {
#define FX(...) {__VA_ARGS__},
#define F(...) {__VA_ARGS__, Execute::kDisplace},
#include "agent/x86/instruction_forms.inc"
#include "agent/x86/instruction_forms_0f38.inc"
#undef F
#undef FX
};
constexpr size_t kRows = sizeof(kTable) / sizeof(kTable[0]);

constexpr size_t kMaps = 7, kCells = 3 * kMaps * 256;

constexpr size_t cell(size_t encoding, OpcodeMap map, size_t opcode) {
  return (encoding * kMaps + static_cast<size_t>(map)) * 256 + opcode;
}

constexpr size_t count_entries() {
  size_t n = 0;
  for (const Form& form : kTable) {
    for (size_t e = 0; e < 3; ++e) {
      if (form.encodings & (1u << e)) n += form.last - form.first + 1u;
    }
  }
  return n;
}

// For every encoding, map and opcode the rows that cover it, in table order.
struct Index {
  uint16_t start[kCells + 1] = {};
  uint16_t rows[count_entries()] = {};
};

constexpr Index make_index() {
  Index index;
  for (const Form& form : kTable) {
    for (size_t e = 0; e < 3; ++e) {
      if (!(form.encodings & (1u << e))) continue;
      for (size_t op = form.first; op <= form.last; ++op) ++index.start[cell(e, form.map, op) + 1];
    }
  }
  for (size_t i = 0; i < kCells; ++i) index.start[i + 1] = static_cast<uint16_t>(index.start[i + 1] + index.start[i]);
  uint16_t next[kCells] = {};
  for (size_t i = 0; i < kCells; ++i) next[i] = index.start[i];
  for (size_t row = 0; row < kRows; ++row) {
    const Form& form = kTable[row];
    for (size_t e = 0; e < 3; ++e) {
      if (!(form.encodings & (1u << e))) continue;
      for (size_t op = form.first; op <= form.last; ++op) {
        index.rows[next[cell(e, form.map, op)]++] = static_cast<uint16_t>(row);
      }
    }
  }
  return index;
}

constexpr Index kIndex = make_index();

}  // namespace

const Form* const kFormTable = kTable;
const size_t kFormCount = kRows;

const Form* find_form(Encoding encoding, OpcodeMap map, uint8_t opcode, Prefix prefix, unsigned digit, bool w) {
  size_t c = cell(static_cast<size_t>(encoding), map, opcode);
  for (size_t i = kIndex.start[c]; i < kIndex.start[c + 1]; ++i) {
    const Form& form = kTable[kIndex.rows[i]];
    if (form.prefix != Prefix::kAny && form.prefix != prefix) continue;
    if (form.digit >= 0 && static_cast<unsigned>(form.digit) != digit) continue;
    if (form.w >= 0 && (form.w != 0) != w) continue;
    return &form;
  }
  return nullptr;
}

}  // namespace classaccess
