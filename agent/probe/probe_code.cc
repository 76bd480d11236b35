#include "agent/probe/probe_code.h"

#include <string.h>

#include "agent/probe/probe_thread.h"
#include "agent/protect/heap_gate.h"
#include "agent/x86/displace.h"

namespace classaccess {
namespace {

constexpr uint8_t kRax = 0, kRcx = 1, kRsp = 4, kRbp = 5, kR13 = 13;
constexpr uint8_t kNotBelow = 3, kNotZero = 5;  // condition codes
constexpr int32_t kRedZone = 128;
constexpr int32_t kSavedRax = 16;  // from RSP, behind the pushes
// RAX and RCX have the shortest forms; none of them is a frame or thread register.
constexpr uint8_t kScratch[] = {kRax, kRcx, 2, 6, 7, 8};

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
  // mov byte fs:[offset], value
  void store_thread_byte(int32_t offset, uint8_t value) {
    byte(0x64);
    byte(0xc6);
    byte(0x04);
    byte(0x25);
    word4(static_cast<uint32_t>(offset));
    byte(value);
  }
  // sub reg, fs:[offset]
  void subtract_thread(unsigned reg, int32_t offset) {
    byte(0x64);
    memory(0x2b, reg, kNoReg, kNoReg, 1, offset);
  }
  void push(unsigned reg) {
    if (reg >= 8) byte(0x41);
    byte(0x50u | (reg & 7));
  }
  void pop(unsigned reg) {
    if (reg >= 8) byte(0x41);
    byte(0x58u | (reg & 7));
  }
  void move(unsigned to, unsigned from) {
    byte(0x48u | (from >> 3) << 2 | to >> 3);
    byte(0x89);
    byte(0xc0u | (from & 7) << 3 | (to & 7));
  }
  // cmp reg, fs:[offset]
  void compare_thread(unsigned reg, int32_t offset) {
    byte(0x64);
    memory(0x3b, reg, kNoReg, kNoReg, 1, offset);
  }
  // cmp byte fs:[offset], 0
  void is_thread_byte_zero(int32_t offset) {
    byte(0x64);
    byte(0x80);
    byte(0x3c);
    byte(0x25);
    word4(static_cast<uint32_t>(offset));
    byte(0);
  }
  // kmovq (AVX512BW, which masks of more than 16 lanes need) or kmovw reg, k
  void load_mask(unsigned reg, unsigned k, bool wide) {
    unsigned not_r = reg < 8 ? 0x80 : 0;
    if (wide) {
      byte(0xc4);
      byte(not_r | 0x61);
      byte(0xfb);
    } else {
      byte(0xc5);
      byte(not_r | 0x78);
    }
    byte(0x93);
    byte(0xc0u | (reg & 7) << 3 | k);
  }
  void lahf() { byte(0x9f); }
  void sahf() { byte(0x9e); }
  void seto_al() {
    byte(0x0f);
    byte(0x90);
    byte(0xc0);
  }
  void add_al(uint8_t value) {
    byte(0x04);
    byte(value);
  }
  // jcc forward, to where land() is called with what it returned.
  size_t jump_if(uint8_t condition) {
    byte(0x0f);
    byte(0x80u | condition);
    word4(0);
    return size_;
  }
  void land(size_t from) {
    uint32_t displacement = static_cast<uint32_t>(size_ - from);
    memcpy(to_ + from - 4, &displacement, 4);
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

bool has_mask(const Instruction& in) {
  // Each lane of the mask has its own element in memory: no broadcast.
  return in.touch == Touch::kLanes && in.encoding == Encoding::kEvex && in.mask != 0 && in.element_bytes != 0 &&
         in.size == in.mask_lanes * in.element_bytes;
}

ProbeOperand probe_operand(const Instruction& in) {
  ProbeOperand operand;
  operand.displacement = static_cast<int32_t>(in.displacement);
  operand.size = in.size;
  operand.op = in.op;
  operand.scale = in.scale;
  operand.has_index = in.index != kNoReg;
  operand.has_base = in.base != kNoReg;
  operand.lane_bytes = has_mask(in) ? in.element_bytes : 0;
  return operand;
}

bool can_probe(const Instruction& in) {
  if (!in.touches_memory || !in.has_memory || in.size == 0) return false;
  if (in.touch != Touch::kWhole && !has_mask(in)) return false;
  if (in.execute != Execute::kEmulate && in.execute != Execute::kDisplace) return false;
  if (in.address32 || in.vsib || in.base == kRip || !can_displace(in)) return false;
  if (in.base == kNoReg && in.index == kNoReg) return false;
  // POP [rsp+d] computes its address after the increment; no heap operand has RSP.
  if (in.base == kRsp) return false;
  return in.displacement == static_cast<int32_t>(in.displacement);
}

namespace {

struct Scratch {
  uint8_t address = 0, cursor = 0;
};

// RAX is not among a library's: it holds the flags.
Scratch choose_scratch(const Instruction& in, bool with_rax) {
  uint8_t found[2] = {};
  int count = 0;
  for (uint8_t reg : kScratch) {
    if (reg == in.base || reg == in.index || (reg == kRax && !with_rax)) continue;
    found[count++] = reg;
    if (count == 2) break;
  }
  return {found[0], found[1]};
}

int32_t busy_at(const ThreadOffsets& offsets) {
  return offsets.probe_thread + static_cast<int32_t>(offsetof(ProbeThread, busy));
}

bool record_has_base(const Instruction& in) { return in.index != kNoReg && in.base != kNoReg; }

uint32_t record_head(const Instruction& in, uint32_t probe_id, bool interpreted) {
  const uint32_t words = 2u + record_has_base(in) + has_mask(in) + (interpreted ? 2 : 0);
  return static_cast<uint32_t>(probe_id | words << kRecordWordsShift | (record_has_base(in) ? kRecordHasBase : 0) |
                               (interpreted ? kRecordInterpreted : 0));
}

// Head, address, base of an indexed operand, mask. Returns the words so far.
int32_t emit_record(Code& code, const Instruction& in, Scratch scratch, uint32_t head, const ThreadOffsets& offsets,
                    bool base_on_stack) {
  const int32_t cursor_at = offsets.probe_thread + static_cast<int32_t>(offsetof(ProbeThread, cursor));
  code.store_thread_byte(busy_at(offsets), 1);
  code.load_thread(scratch.cursor, cursor_at);
  code.store_number(scratch.cursor, head);
  code.store(scratch.cursor, 8, scratch.address);
  int32_t words = 2;
  if (record_has_base(in)) {
    uint8_t base = in.base;
    if (base_on_stack) code.load(base = scratch.address, kRsp, kSavedRax);
    code.store(scratch.cursor, 8 * words++, base);
  }
  if (has_mask(in)) {
    code.load_mask(scratch.address, in.mask, in.mask_lanes > 16);
    code.store(scratch.cursor, 8 * words++, scratch.address);
  }
  return words;
}

void emit_advance(Code& code, Scratch scratch, int32_t words, const ThreadOffsets& offsets) {
  code.lea(scratch.cursor, scratch.cursor, kNoReg, 1, 8 * words);
  code.store_thread(offsets.probe_thread + static_cast<int32_t>(offsetof(ProbeThread, cursor)), scratch.cursor);
  code.store_thread_byte(busy_at(offsets), 0);
}

// The GS copy and the plain one, each with its way back.
bool emit_access(Code& code, const Instruction& in, uint64_t at, uint64_t next, ProbeShape* shape) {
  shape->access = static_cast<uint8_t>(code.size());
  uint8_t copy[kMaxDisplaced];
  if (write_displaced(in, next, copy) == 0) return false;
  code.bytes(copy, displaced_jump_offset(in));
  if (!code.jump(at, next)) return false;
  shape->plain = static_cast<uint8_t>(code.size());
  code.bytes(in.bytes, in.length);
  return code.jump(at, next);
}

bool write_code_cache_probe(Code& code, const Instruction& in, uint64_t pc, uint64_t at, uint32_t probe_id,
                            bool interpreted, const ThreadOffsets& offsets, ProbeShape* shape) {
  const Scratch scratch = choose_scratch(in, true);
  const int32_t save_at = offsets.probe_thread + static_cast<int32_t>(offsetof(ProbeThread, save));
  code.store_thread(save_at, scratch.address);
  code.store_thread(save_at + 8, scratch.cursor);
  code.lea(scratch.address, in.base, in.index, in.scale, static_cast<int32_t>(in.displacement));
  int32_t words = emit_record(code, in, scratch, record_head(in, probe_id, interpreted), offsets, false);
  if (interpreted) {
    code.store(scratch.cursor, 8 * words++, kR13);
    shape->method_load = static_cast<uint8_t>(code.size());
    code.load(scratch.address, kRbp, -24);
    shape->method_load_end = static_cast<uint8_t>(code.size());
    code.store(scratch.cursor, 8 * words++, scratch.address);
  }
  emit_advance(code, scratch, words, offsets);
  code.load_thread(scratch.cursor, save_at + 8);
  code.load_thread(scratch.address, save_at);
  if (!emit_access(code, in, at, pc + in.length, shape)) return false;
  shape->leave = shape->unrecorded = static_cast<uint8_t>(code.size());
  shape->cursor_register = scratch.cursor;
  shape->address_register = scratch.address;
  shape->record_words = static_cast<uint8_t>(words);
  return true;
}

bool write_library_probe(Code& code, const Instruction& in, uint64_t pc, uint64_t at, uint32_t probe_id,
                         const ThreadOffsets& offsets, ProbeShape* shape) {
  const Scratch scratch = choose_scratch(in, false);
  auto restore = [&] {
    code.add_al(127);  // overflows if it was set
    code.sahf();
    code.pop(scratch.cursor);
    code.pop(scratch.address);
    code.pop(kRax);
    code.lea(kRsp, kRsp, kNoReg, 1, kRedZone);
  };
  code.lea(kRsp, kRsp, kNoReg, 1, -kRedZone);
  code.push(kRax);
  code.push(scratch.address);
  code.push(scratch.cursor);
  shape->pushed = static_cast<uint8_t>(code.size());
  code.lea(scratch.address, in.base, in.index, in.scale, static_cast<int32_t>(in.displacement));
  code.lahf();
  code.seto_al();
  code.move(scratch.cursor, scratch.address);
  code.subtract_thread(scratch.cursor, offsets.watched + static_cast<int32_t>(offsetof(WatchedWindow, low)));
  code.compare_thread(scratch.cursor, offsets.watched + static_cast<int32_t>(offsetof(WatchedWindow, bytes)));
  const size_t outside = code.jump_if(kNotBelow);
  code.is_thread_byte_zero(busy_at(offsets));
  const size_t busy = code.jump_if(kNotZero);
  int32_t words = emit_record(code, in, scratch, record_head(in, probe_id, false), offsets, in.base == kRax);
  emit_advance(code, scratch, words, offsets);
  restore();
  const uint64_t next = pc + in.length;
  if (!emit_access(code, in, at, next, shape)) return false;
  code.land(outside);
  code.land(busy);
  shape->leave = static_cast<uint8_t>(code.size());
  restore();
  shape->unrecorded = static_cast<uint8_t>(code.size());
  code.bytes(in.bytes, in.length);
  if (!code.jump(at, next)) return false;
  shape->cursor_register = scratch.cursor;
  shape->address_register = scratch.address;
  shape->record_words = static_cast<uint8_t>(words);
  return true;
}

}  // namespace

size_t write_probe(const Instruction& in, uint64_t pc, uint64_t at, uint32_t probe_id, ProbeKind kind,
                   const ThreadOffsets& offsets, uint8_t* to, ProbeShape* shape) {
  if (!can_probe(in)) return 0;
  *shape = {};
  Code code(to);
  bool done = kind == ProbeKind::kLibrary
                  ? write_library_probe(code, in, pc, at, probe_id, offsets, shape)
                  : write_code_cache_probe(code, in, pc, at, probe_id, kind == ProbeKind::kInterpreted, offsets, shape);
  return done ? code.size() : 0;
}

}  // namespace classaccess
