#include "agent/x86/emulate.h"

#include "agent/x86/real_ops.h"

namespace classaccess {
namespace {

constexpr unsigned kRax = 0, kRcx = 1, kRdx = 2, kRbx = 3;

// A register operand: without REX, byte numbers 4..7 are AH, CH, DH, BH.
bool is_high_byte(const Instruction& in, unsigned number, unsigned bytes) {
  return bytes == 1 && !in.rex && number >= 4 && number < 8;
}

uint64_t low(uint64_t value, unsigned bytes) { return bytes == 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1); }

uint64_t read_register(const Instruction& in, const CpuState& state, unsigned number, unsigned bytes) {
  if (is_high_byte(in, number, bytes)) return state.gpr[number - 4] >> 8 & 0xff;
  return low(state.gpr[number & 15], bytes);
}

// 32-bit writes clear the upper half, 8- and 16-bit writes keep the rest.
void write_register(const Instruction& in, CpuState* state, unsigned number, unsigned bytes, uint64_t value) {
  if (is_high_byte(in, number, bytes)) {
    uint64_t& whole = state->gpr[number - 4];
    whole = (whole & ~uint64_t{0xff00}) | (value & 0xff) << 8;
    return;
  }
  uint64_t& whole = state->gpr[number & 15];
  switch (bytes) {
    case 1: whole = (whole & ~uint64_t{0xff}) | (value & 0xff); break;
    case 2: whole = (whole & ~uint64_t{0xffff}) | (value & 0xffff); break;
    case 4: whole = value & 0xffffffffu; break;
    default: whole = value; break;
  }
}

uint64_t sign_extend(uint64_t value, unsigned bytes) {
  unsigned shift = 64 - 8 * bytes;
  return static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
}

struct Context {
  const Instruction& in;
  CpuState* state;
  void* memory;
  uint64_t* value;
  unsigned bytes;  // of the memory operand

  uint64_t reg() const { return read_register(in, *state, in.reg, bytes); }
  void set_reg(uint64_t v) const { write_register(in, state, in.reg, bytes, v); }
  uint64_t load() const { return real::load(memory, bytes); }
  void note(uint64_t v) const {
    if (value != nullptr) *value = low(v, bytes);
  }
};

bool load_to(const Context& c, unsigned number, unsigned destination_bytes, bool sign) {
  uint64_t v = c.load();
  c.note(v);
  write_register(c.in, c.state, number, destination_bytes, sign ? sign_extend(v, c.bytes) : v);
  return true;
}

bool store_from(const Context& c, uint64_t v) {
  real::store(c.memory, v, c.bytes);
  c.note(v);
  return true;
}

// ADD OR ADC SBB AND SUB XOR CMP, `kind` 0..7: register destination.
bool alu_load(const Context& c, unsigned kind) {
  uint64_t source = c.load();
  c.note(source);
  uint64_t result = real::alu(kind, c.reg(), source, c.bytes, &c.state->rflags);
  if (kind != real::kCmp) c.set_reg(result);
  return true;
}

// Memory destination.
bool alu_store(const Context& c, unsigned kind, uint64_t source) {
  if (kind == real::kCmp) {
    uint64_t destination = c.load();
    c.note(destination);
    real::alu(kind, destination, source, c.bytes, &c.state->rflags);
    return true;
  }
  real::alu_memory(kind, c.memory, source, c.bytes, c.in.lock, &c.state->rflags);
  if (c.value != nullptr) c.note(c.load());
  return true;
}

bool test(const Context& c, uint64_t source) {
  uint64_t v = c.load();
  c.note(v);
  real::test(v, source, c.bytes, &c.state->rflags);
  return true;
}

bool unary(const Context& c, real::Unary kind) {
  real::unary_memory(kind, c.memory, c.bytes, c.in.lock, &c.state->rflags);
  if (c.value != nullptr) c.note(c.load());
  return true;
}

bool exchange(const Context& c) {
  uint64_t stored = c.reg();
  c.set_reg(real::exchange(c.memory, stored, c.bytes));
  c.note(stored);
  return true;
}

bool exchange_add(const Context& c) {
  uint64_t added = c.reg();
  uint64_t old = real::exchange_add(c.memory, added, c.bytes, c.in.lock, &c.state->rflags);
  c.set_reg(old);
  c.note(old + added);
  return true;
}

bool compare_exchange(const Context& c) {
  uint64_t wanted = c.reg();
  uint64_t accumulator = c.state->gpr[kRax];
  bool exchanged = real::compare_exchange(c.memory, &accumulator, wanted, c.bytes, c.in.lock, &c.state->rflags);
  c.state->gpr[kRax] = accumulator;
  c.note(exchanged ? wanted : accumulator);
  return true;
}

bool compare_exchange_pair(const Context& c) {
  uint64_t* gpr = c.state->gpr;
  bool exchanged = real::compare_exchange_pair(c.memory, c.bytes, &gpr[kRax], &gpr[kRdx], gpr[kRbx], gpr[kRcx],
                                               c.in.lock, &c.state->rflags);
  if (c.value != nullptr) {
    const uint64_t low_half = exchanged ? gpr[kRbx] : gpr[kRax], high_half = exchanged ? gpr[kRcx] : gpr[kRdx];
    *c.value = c.bytes == 16 ? low_half : low(low_half, 4) | high_half << 32;
  }
  return true;
}

bool conditional_move(const Context& c) {
  uint64_t v = c.load();
  c.note(v);
  // A false condition still clears the upper half of a 32-bit destination (SDM vol. 2, CMOVcc).
  c.set_reg(real::condition_holds(c.in.opcode & 15, c.state->rflags) ? v : c.reg());
  return true;
}

bool run_0f(const Context& c) {
  const Instruction& in = c.in;
  switch (in.opcode) {
    case 0xb0:
    case 0xb1: return compare_exchange(c);
    case 0xb6:
    case 0xb7: return load_to(c, in.reg, in.operand_bytes, false);
    case 0xbe:
    case 0xbf: return load_to(c, in.reg, in.operand_bytes, true);
    case 0xc0:
    case 0xc1: return exchange_add(c);
    case 0xc7: return compare_exchange_pair(c);
    default: return (in.opcode & 0xf0) == 0x40 && conditional_move(c);
  }
}

bool run_1byte(const Context& c) {
  const Instruction& in = c.in;
  unsigned digit = (in.modrm >> 3) & 7u;
  if (in.opcode < 0x40) {
    unsigned kind = in.opcode >> 3;
    return in.opcode & 2 ? alu_load(c, kind) : alu_store(c, kind, c.reg());
  }
  switch (in.opcode) {
    case 0x63: return load_to(c, in.reg, in.operand_bytes, true);
    case 0x80:
    case 0x81:
    case 0x83: return alu_store(c, digit, in.immediate);
    case 0x84:
    case 0x85: return test(c, c.reg());
    case 0x86:
    case 0x87: return exchange(c);
    case 0x88:
    case 0x89: return store_from(c, c.reg());
    case 0x8a:
    case 0x8b: return load_to(c, in.reg, c.bytes, false);
    case 0xa0:
    case 0xa1: return load_to(c, kRax, c.bytes, false);
    case 0xa2:
    case 0xa3: return store_from(c, low(c.state->gpr[kRax], c.bytes));
    case 0xc6:
    case 0xc7: return store_from(c, in.immediate);
    case 0xf6:
    case 0xf7:
      if (digit <= 1) return test(c, in.immediate);
      return digit <= 3 && unary(c, digit == 2 ? real::Unary::kNot : real::Unary::kNeg);
    case 0xfe:
    case 0xff: return digit <= 1 && unary(c, digit == 0 ? real::Unary::kInc : real::Unary::kDec);
    default: return false;
  }
}

}  // namespace

bool emulate(const Instruction& in, CpuState* state, void* memory, uint64_t* value) {
  if (in.execute != Execute::kEmulate) return false;
  Context c{in, state, memory, value, in.size};
  if (!(in.map == OpcodeMap::k0F ? run_0f(c) : run_1byte(c))) return false;
  state->rip += in.length;
  return true;
}

}  // namespace classaccess
