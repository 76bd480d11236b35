// Runs one instruction on the real CPU with a chosen state: registers, flags, vector
// and mask registers in, the same out, faults reported instead of fatal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "agent/x86/instruction.h"

namespace classaccess::test {

// Offsets are used by the assembly in native.cc.
struct alignas(64) MachineState {
  uint64_t gpr[16];  // ModRM order
  uint64_t rflags;
  uint64_t unused[7];
  uint8_t zmm[32][64];
  uint64_t k[8];
  uint32_t mxcsr;
  uint32_t unused2[15];
  uint8_t x87[512];  // FXSAVE image; in: only the MMX registers, all tagged empty
};

enum class Outcome { kCompleted, kPageFault, kGeneralProtection, kIllegal, kOther };

struct NativeResult {
  Outcome outcome = Outcome::kCompleted;
  uint64_t fault_address = 0;
  bool fault_write = false;
  uint64_t fault_rip = 0;
};

// True if this machine has AVX-512 F, BW, DQ, VL and wrgsbase; else tests skip.
bool machine_supported();

// Memory at a low address, so that 32-bit addressing reaches it, mapped twice.
constexpr size_t kPage = 4096;
constexpr size_t kPages = 8;
constexpr size_t kHeapBytes = kPages * kPage;
extern uint8_t* g_heap;           // what programs address
extern uint64_t g_twin_distance;  // twin - heap
extern uint8_t* g_behind;         // a page of ordinary memory right behind the heap; its twin is not mapped
extern uint8_t* g_outside;        // kHeapBytes of ordinary memory, low as well
uint8_t* twin();

// Protection of pages [first, first + count) of the heap's plain view, of twin() or of g_outside.
void protect(uint8_t* area, size_t first, size_t count, int protection);

// Maps everything and installs the fault handler. Once a process.
void set_up_machine();

// Runs bytes at a low address; *state is updated also if it faults (state at the fault).
NativeResult run_native(const uint8_t* code, size_t length, MachineState* state);
// Runs code that ends by itself with a jump to native_exit(), with this GS base.
NativeResult run_displaced(const uint8_t* code, size_t length, uint64_t gs_base, MachineState* state);
uint64_t native_exit();
// Where run_native places the code.
uint64_t native_code_address();

// An XSAVE image with the vector and mask registers of `state`, as a signal frame has it.
const void* xsave_image(const MachineState& state);

// The XSAVE image of the last fault's signal frame.
const void* last_frame();

using Random = std::mt19937_64;
// From CLASSACCESS_SEED or the clock; printed.
uint64_t seed();
void randomize(Random& random, MachineState* state);

CpuState cpu_state(const MachineState& state);
std::string hex(const uint8_t* bytes, size_t n);
// Empty if equal; else what differs. Vectors, masks and x87 only if `all`.
std::string compare(const MachineState& expected, const MachineState& actual, bool all);

}  // namespace classaccess::test
