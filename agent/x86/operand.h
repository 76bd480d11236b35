// From a decoded instruction and registers to the addresses it touches.
// Context: signal handler and any thread; no state but the XSAVE layout, which is
// read once at start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// Reads the component offsets of CPUID leaf 0xD. At load, before the first trap.
void init_xstate_layout();

// The first byte of the memory operand: RIP-relative, FS base, address size 67,
// bit strings reaching beyond the operand, POP [rsp+d] after the increment.
// A GS override is taken as base 0: no user code has one. For gathers and scatters
// the address without the index. For string instructions the destination (source
// for LODS, CMPS and MOVS: use string_ops.h instead).
uint64_t effective_address(const Instruction& instruction, const CpuState& state);

struct TouchedRun {
  uint64_t address;
  uint32_t size;
};

struct TouchedRuns {
  static constexpr uint32_t kMax = 32;  // 64 byte lanes, every second one masked off
  uint32_t count = 0;
  TouchedRun runs[kMax];
};

// The bytes really touched, adjacent lanes joined; none if everything is masked
// off. Not for string instructions.
void find_touched(const Instruction& instruction, const CpuState& state, TouchedRuns* out);

// Calls callback(address, size, op) for each run.
template <typename Callback>
void for_each_touched(const Instruction& instruction, const CpuState& state, Callback&& callback) {
  TouchedRuns touched;
  find_touched(instruction, state, &touched);
  for (uint32_t i = 0; i < touched.count; ++i) {
    callback(touched.runs[i].address, touched.runs[i].size, instruction.op);
  }
}

// Registers in the frame's XSAVE image (uncompacted, as the kernel writes it).
// A component in its initial state reads as zero, so does a null fpstate.
uint64_t read_mask(const void* fpstate, unsigned k);
// The low `bytes` (at most 64) of zmm `number`.
void read_vector(const void* fpstate, unsigned number, unsigned bytes, uint8_t* to);

}  // namespace classaccess
