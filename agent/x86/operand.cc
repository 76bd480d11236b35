#include "agent/x86/operand.h"

#include <cpuid.h>

#include <cstring>

namespace classaccess {
namespace {

// XSAVE components (Intel SDM vol. 1, 13.1) in the uncompacted layout.
constexpr unsigned kSse = 1, kAvx = 2, kOpmask = 5, kZmmHigh = 6, kHigh16 = 7, kComponents = 8;
constexpr size_t kXmmOffset = 160, kHeaderOffset = 512;

// Zero: this CPU has no such component.
uint32_t g_component_offset[kComponents] = {};

const uint8_t* component(const void* fpstate, unsigned number) {
  if (fpstate == nullptr) return nullptr;
  const uint8_t* image = static_cast<const uint8_t*>(fpstate);
  uint64_t present;
  std::memcpy(&present, image + kHeaderOffset, sizeof(present));
  if (!(present & (1u << number))) return nullptr;
  if (number == kSse) return image + kXmmOffset;
  return g_component_offset[number] != 0 ? image + g_component_offset[number] : nullptr;
}

void copy_part(const void* fpstate, unsigned number, size_t at, size_t bytes, uint8_t* to) {
  const uint8_t* from = component(fpstate, number);
  if (from == nullptr) {
    std::memset(to, 0, bytes);
  } else {
    std::memcpy(to, from + at, bytes);
  }
}

int64_t signed_register(uint64_t value, unsigned bytes) {
  switch (bytes) {
    case 2: return static_cast<int16_t>(value);
    case 4: return static_cast<int32_t>(value);
    default: return static_cast<int64_t>(value);
  }
}

uint64_t segment_base(const Instruction& in, const CpuState& state) { return in.segment == 0x64 ? state.fs_base : 0; }

uint64_t truncate(const Instruction& in, uint64_t address) { return in.address32 ? address & 0xffffffffu : address; }

// Base and displacement, without index and segment, before truncation.
uint64_t base_part(const Instruction& in, const CpuState& state) {
  uint64_t address = static_cast<uint64_t>(in.displacement);
  if (in.base == kRip) {
    address += state.rip + in.length;
  } else if (in.base != kNoReg) {
    address += state.gpr[in.base & 15];
    // POP computes its operand's address after the increment (SDM vol. 2, POP).
    bool pop = in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k1Byte && in.opcode == 0x8f;
    if (pop && in.base == 4) address += in.size;
  }
  return address;
}

void add_run(TouchedRuns* out, uint64_t address, uint32_t size) {
  if (out->count != 0) {
    TouchedRun& last = out->runs[out->count - 1];
    if (last.address + last.size == address) {
      last.size += size;
      return;
    }
  }
  if (out->count < TouchedRuns::kMax) out->runs[out->count++] = TouchedRun{address, size};
}

// Not the builtin: that calls into libgcc where the CPU's POPCNT may not be assumed.
uint32_t count_bits(uint64_t bits) {
  uint32_t n = 0;
  for (; bits != 0; bits &= bits - 1) ++n;
  return n;
}

uint64_t low_bits(unsigned n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

// Bit i is set if lane i takes part.
uint64_t active_lanes(const Instruction& in, const CpuState& state) {
  uint64_t all = low_bits(in.mask_lanes);
  if (in.encoding == Encoding::kEvex) return in.mask == 0 ? all : read_mask(state.fpstate, in.mask) & all;
  uint8_t vector[64];
  bool byte_mask = in.touch == Touch::kByteMask;
  unsigned element = byte_mask ? 1u : in.element_bytes;
  unsigned number = byte_mask ? in.rm : in.vvvv;
  if (byte_mask && in.size == 8) {
    // MASKMOVQ: the mask is an MMX register, the mantissa of an x87 slot of the FXSAVE area.
    if (state.fpstate == nullptr) return all;
    std::memcpy(vector, static_cast<const uint8_t*>(state.fpstate) + 32 + 16u * (number & 7u), 8);
  } else {
    read_vector(state.fpstate, number, 64, vector);
  }
  uint64_t lanes = 0;
  for (unsigned i = 0; i < in.mask_lanes; ++i) {
    if (vector[(i + 1) * element - 1] & 0x80) lanes |= uint64_t{1} << i;
  }
  return lanes;
}

void find_indexed(const Instruction& in, const CpuState& state, uint64_t lanes, TouchedRuns* out) {
  uint8_t vector[64];
  read_vector(state.fpstate, in.index, 64, vector);
  uint64_t base = base_part(in, state), segment = segment_base(in, state);
  for (unsigned i = 0; i < in.mask_lanes; ++i) {
    if (!(lanes >> i & 1)) continue;
    uint64_t index = 0;
    std::memcpy(&index, vector + i * in.index_bytes, in.index_bytes);
    uint64_t offset = static_cast<uint64_t>(signed_register(index, in.index_bytes)) * in.scale;
    add_run(out, segment + truncate(in, base + offset), in.element_bytes);
  }
}

}  // namespace

void init_xstate_layout() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(0xd, 0, &a, &b, &c, &d)) return;
  unsigned supported = a;
  constexpr unsigned kWanted[] = {kAvx, kOpmask, kZmmHigh, kHigh16};
  for (unsigned i : kWanted) {
    if (!(supported & (1u << i)) || !__get_cpuid_count(0xd, i, &a, &b, &c, &d)) continue;
    g_component_offset[i] = b;
  }
}

uint64_t read_mask(const void* fpstate, unsigned k) {
  uint64_t value;
  copy_part(fpstate, kOpmask, 8u * (k & 7u), 8, reinterpret_cast<uint8_t*>(&value));
  return value;
}

void read_vector(const void* fpstate, unsigned number, unsigned bytes, uint8_t* to) {
  uint8_t whole[64];
  number &= 31u;
  if (number < 16) {
    copy_part(fpstate, kSse, 16u * number, 16, whole);
    copy_part(fpstate, kAvx, 16u * number, 16, whole + 16);
    copy_part(fpstate, kZmmHigh, 32u * number, 32, whole + 32);
  } else {
    copy_part(fpstate, kHigh16, 64u * (number - 16), 64, whole);
  }
  std::memcpy(to, whole, bytes < 64 ? bytes : 64);
}

uint64_t effective_address(const Instruction& in, const CpuState& state) {
  uint64_t address = base_part(in, state);
  if (in.index != kNoReg && !in.vsib) address += state.gpr[in.index & 15] * in.scale;
  bool xlat = in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k1Byte && in.opcode == 0xd7;
  if (xlat) address += state.gpr[0] & 0xff;
  if (in.touch == Touch::kBitString) {
    unsigned bytes = in.operand_bytes;
    unsigned shift = bytes == 8 ? 6 : bytes == 4 ? 5 : 4;
    int64_t bit = signed_register(state.gpr[in.reg & 15], bytes);
    address += static_cast<uint64_t>((bit >> shift) * static_cast<int64_t>(bytes));
  }
  return segment_base(in, state) + truncate(in, address);
}

void find_touched(const Instruction& in, const CpuState& state, TouchedRuns* out) {
  out->count = 0;
  if (!in.touches_memory || in.size == 0) return;
  if (in.touch == Touch::kWhole || in.touch == Touch::kBitString) {
    add_run(out, effective_address(in, state), in.size);
    return;
  }
  uint64_t lanes = active_lanes(in, state);
  if (in.touch == Touch::kIndexed) {
    find_indexed(in, state, lanes, out);
    return;
  }
  uint64_t address = effective_address(in, state);
  if (in.touch == Touch::kPacked) {
    uint32_t bytes = count_bits(lanes) * in.element_bytes;
    if (bytes != 0) add_run(out, address, bytes);
    return;
  }
  // A broadcast lane of memory feeds several lanes of the mask.
  unsigned element = in.touch == Touch::kByteMask ? 1u : in.element_bytes;
  unsigned in_memory = in.size / element;
  if (in_memory < in.mask_lanes) {
    uint64_t folded = 0;
    for (unsigned i = 0; i < in.mask_lanes; ++i) folded |= (lanes >> i & 1) << (i % in_memory);
    lanes = folded;
  }
  for (unsigned i = 0; i < in_memory; ++i) {
    if (lanes >> i & 1) add_run(out, address + i * element, element);
  }
}

}  // namespace classaccess
