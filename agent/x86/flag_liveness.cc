#include "agent/x86/flag_liveness.h"

#include "agent/x86/decode.h"

namespace classaccess {
namespace {

// What an instruction means for status flags that some earlier CMP or TEST left.
enum class Effect : uint8_t { kKeeps, kReads, kOverwrites, kLeaves };

constexpr Effect kKeeps = Effect::kKeeps, kReads = Effect::kReads, kOverwrites = Effect::kOverwrites,
                 kLeaves = Effect::kLeaves;

Effect of_1byte(const Instruction& in) {
  uint8_t op = in.opcode;
  unsigned digit = (in.modrm >> 3) & 7u;
  if (op < 0x40) {
    unsigned kind = op >> 3;
    return kind == 2 || kind == 3 ? kReads : kOverwrites;  // ADC, SBB
  }
  if (op >= 0x50 && op <= 0x5f) return kKeeps;
  if (op >= 0x70 && op <= 0x7f) return kReads;
  if (op >= 0xb0 && op <= 0xbf) return kKeeps;
  if (op >= 0x90 && op <= 0x99) return kKeeps;  // XCHG, NOP, CBW, CWD
  switch (op) {
    case 0x63:
    case 0x68:
    case 0x6a:
    case 0x86:
    case 0x87:
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b:
    case 0x8d:
    case 0x8f:
    case 0xa0:
    case 0xa1:
    case 0xa2:
    case 0xa3:
    case 0xc9:
    case 0xcc: return kKeeps;
    case 0xc6:
    case 0xc7: return digit == 0 ? kKeeps : kReads;  // XABORT, XBEGIN
    case 0x80:
    case 0x81:
    case 0x83: return digit == 2 || digit == 3 ? kReads : kOverwrites;
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9: return kOverwrites;
    case 0xc2:
    case 0xc3:
    case 0xe8:
    case 0xe9:
    case 0xeb: return kLeaves;
    case 0xf6:
    case 0xf7:
      if (digit == 2) return kKeeps;
      return digit <= 3 ? kOverwrites : kReads;  // MUL, DIV leave some undefined
    case 0xff: return digit == 2 || digit == 4 ? kLeaves : digit == 6 ? kKeeps : kReads;
    default: return kReads;
  }
}

Effect of_0f(const Instruction& in) {
  uint8_t op = in.opcode;
  if ((op >= 0x40 && op <= 0x4f) || (op >= 0x80 && op <= 0x9f)) return kReads;  // CMOVcc, Jcc, SETcc
  if (op == 0x0b) return kLeaves;                                               // UD2
  if (op >= 0x18 && op <= 0x1f) return kKeeps;
  if (op == 0x2e || op == 0x2f || op == 0xc0 || op == 0xc1) return kOverwrites;  // UCOMIS, COMIS, XADD
  if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || op == 0x0d) return kKeeps;
  bool vector_move = (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2d) || (op >= 0x51 && op <= 0x7f) ||
                     op == 0xc2 || op == 0xc6 || op >= 0xd0;
  return vector_move ? kKeeps : kReads;
}

Effect of(const Instruction& in) {
  if (in.encoding != Encoding::kLegacy) {
    if (in.map == OpcodeMap::k0F) return in.opcode == 0x2e || in.opcode == 0x2f ? kOverwrites : kKeeps;
    return kReads;
  }
  if (in.map == OpcodeMap::k1Byte) return of_1byte(in);
  return in.map == OpcodeMap::k0F ? of_0f(in) : kReads;
}

}  // namespace

bool flags_are_dead_after(const uint8_t* next_bytes, size_t available) {
  constexpr int kLimit = 32;
  for (int i = 0; i < kLimit; ++i) {
    Instruction in;
    if (!decode(next_bytes, available, &in)) return false;
    switch (of(in)) {
      case Effect::kKeeps: break;
      case Effect::kReads: return false;
      case Effect::kOverwrites:
      case Effect::kLeaves: return true;
    }
    next_bytes += in.length;
    available -= in.length;
  }
  return false;
}

}  // namespace classaccess
