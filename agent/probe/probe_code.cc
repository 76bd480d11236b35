#include "agent/probe/probe_code.h"

#include <string.h>

#include "agent/probe/probe_thread.h"
#include "agent/x86/displace.h"

namespace classaccess {
namespace {

constexpr uint8_t kRcx = 1, kRsp = 4, kRbp = 5, kR13 = 13;
// RAX and RCX have the shortest forms; none of them is a frame or thread register.
constexpr uint8_t kScratch[] = {0, kRcx, 2, 6, 7, 8};

// Appends instructions; all operands are 64 bits wide.
class Code {
 public:
  explicit Code(uint8_t* to) : to_(to) {}
  size_t size() const { return size_; }

  void byte(unsigned value) { to_[size_++] = static_cast<uint8_t>(value); }
  void word4(uint32_t value) {
    memcpy(to_ + size_, &value, 4);
    size_ += 4;
  }
  void bytes(const uint8_t* from, size_t count) {
    memcpy(to_ + size_, from, count);
    size_ += count;
  }

  // `opcode` reg, [base + index * scale + displacement]; base, index may be kNoReg.
  void memory(unsigned opcode, unsigned reg, unsigned base, unsigned index, unsigned scale, int32_t displacement) {
    bool no_base = base == kNoReg, no_index = index == kNoReg;
    unsigned rex = 0x48u | (reg >> 3) << 2 | (no_index ? 0 : index >> 3) << 1 | (no_base ? 0 : base >> 3);
    byte(rex);
    byte(opcode);
    bool small = displacement >= -128 && displacement <= 127;
    // RBP and R13 as a base need a displacement; without a base it has four bytes.
    unsigned mod = no_base ? 0 : displacement == 0 && (base & 7) != kRbp ? 0 : small ? 1 : 2;
    bool sib = !no_index || no_base || (base & 7) == kRsp;
    byte(mod << 6 | (reg & 7) << 3 | (sib ? kRsp : base & 7));
    if (sib) {
      unsigned log2 = scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
      byte(log2 << 6 | (no_index ? 4u : index & 7) << 3 | (no_base ? 5u : base & 7));
    }
    if (no_base || mod == 2) {
      word4(static_cast<uint32_t>(displacement));
    } else if (mod == 1) {
      byte(static_cast<uint8_t>(displacement));
    }
  }
  void store(unsigned base, int32_t displacement, unsigned reg) { memory(0x89, reg, base, kNoReg, 1, displacement); }
  void load(unsigned reg, unsigned base, int32_t displacement) { memory(0x8b, reg, base, kNoReg, 1, displacement); }
  void lea(unsigned reg, unsigned base, unsigned index, unsigned scale, int32_t displacement) {
    memory(0x8d, reg, base, index, scale, displacement);
  }
  // fs:[offset]
  void store_thread(int32_t offset, unsigned reg) {
    byte(0x64);
    memory(0x89, reg, kNoReg, kNoReg, 1, offset);
  }
  void load_thread(unsigned reg, int32_t offset) {
    byte(0x64);
    memory(0x8b, reg, kNoReg, kNoReg, 1, offset);
  }
  // mov qword [reg], value (sign-extended)
  void store_number(unsigned reg, uint32_t value) {
    byte(0x48u | reg >> 3);
    byte(0xc7);
    byte(reg & 7);  // never RSP, RBP, R12, R13
    word4(value);
  }
  // jmp rel32; false if out of reach. `here`: where this code runs.
  bool jump(uint64_t here, uint64_t target) {
    int64_t displacement = static_cast<int64_t>(target - (here + size_ + 5));
    if (displacement != static_cast<int32_t>(displacement)) return false;
    byte(0xe9);
    word4(static_cast<uint32_t>(displacement));
    return true;
  }

 private:
  uint8_t* to_;
  size_t size_ = 0;
};

}  // namespace

bool can_probe(const Instruction& in) {
  if (!in.touches_memory || !in.has_memory || in.size == 0 || in.touch != Touch::kWhole) return false;
  if (in.execute != Execute::kEmulate && in.execute != Execute::kDisplace) return false;
  if (in.address32 || in.vsib || in.base == kRip || !can_displace(in)) return false;
  if (in.base == kNoReg && in.index == kNoReg) return false;
  // POP [rsp+d] computes its address after the increment; no heap operand has RSP.
  if (in.base == kRsp) return false;
  return in.displacement == static_cast<int32_t>(in.displacement);
}

size_t write_probe(const Instruction& in, uint64_t pc, uint64_t at, uint32_t probe_id, bool interpreted,
                   int32_t thread_offset, uint8_t* to, ProbeShape* shape) {
  if (!can_probe(in)) return 0;
  uint8_t scratch[2];
  int found = 0;
  for (uint8_t reg : kScratch) {
    if (reg == in.base || reg == in.index) continue;
    scratch[found++] = reg;
    if (found == 2) break;
  }
  const uint8_t address = scratch[0], cursor = scratch[1];
  const int32_t cursor_at = thread_offset + static_cast<int32_t>(offsetof(ProbeThread, cursor));
  const int32_t save_at = thread_offset + static_cast<int32_t>(offsetof(ProbeThread, save));

  Code code(to);
  code.store_thread(save_at, address);
  code.store_thread(save_at + 8, cursor);
  code.lea(address, in.base, in.index, in.scale, static_cast<int32_t>(in.displacement));
  code.load_thread(cursor, cursor_at);
  code.store_number(cursor, probe_id);
  code.store(cursor, 8, address);
  int32_t words = 2;
  if (in.index != kNoReg && in.base != kNoReg) code.store(cursor, 8 * words++, in.base);
  if (interpreted) {
    code.store(cursor, 8 * words++, kR13);
    shape->method_load = static_cast<uint8_t>(code.size());
    code.load(address, kRbp, -24);
    shape->method_load_end = static_cast<uint8_t>(code.size());
    code.store(cursor, 8 * words++, address);
  }
  code.lea(cursor, cursor, kNoReg, 1, 8 * words);
  code.store_thread(cursor_at, cursor);
  code.load_thread(cursor, save_at + 8);
  code.load_thread(address, save_at);
  shape->access = static_cast<uint8_t>(code.size());
  uint8_t copy[kMaxDisplaced];
  const uint64_t next = pc + in.length;
  if (write_displaced(in, next, copy) == 0) return 0;
  code.bytes(copy, displaced_jump_offset(in));
  if (!code.jump(at, next)) return 0;
  shape->plain = static_cast<uint8_t>(code.size());
  code.bytes(in.bytes, in.length);
  if (!code.jump(at, next)) return 0;
  shape->end = static_cast<uint8_t>(code.size());
  shape->cursor_register = cursor;
  shape->address_register = address;
  shape->record_words = static_cast<uint8_t>(words);
  return code.size();
}

}  // namespace classaccess
