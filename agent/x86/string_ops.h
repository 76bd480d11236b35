// Performs an Execute::kString instruction: MOVS, STOS, LODS, CMPS, SCAS with and
// without REP, as many iterations as can be reached at once.
// Context: signal handler. The CPU's own string instructions do the work, so overlap,
// element atomicity and flags are its own.
#pragma once

#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// What the caller knows about addresses, and what it wants to hear.
struct StringAccess {
  void* context;
  // Where `address` can be accessed from the handler: in armed ranges the twin
  // address, elsewhere the address itself; 0 if nowhere. *below and *above: how many
  // bytes [address - *below, address + *above) the same distance holds for.
  uint64_t (*translate)(void* context, uint64_t address, uint64_t* below, uint64_t* above);
  // A contiguous run touched, at its lowest address; the source before the
  // destination. May be null.
  void (*touched)(void* context, uint64_t address, uint64_t bytes, Op op);
};

enum class StringResult : uint8_t {
  kDone,     // complete: rip is behind the instruction
  kStopped,  // translate said no, an access faulted, or an element crosses two
             // translations: registers are as after the completed iterations, rip still
             // at the instruction
};

StringResult run_string(const Instruction& instruction, CpuState* state, const StringAccess& access);

// If `pc` is inside one of our string instructions, where to resume; else 0. The fault
// handler asks here, as it asks safe_load_recover, for every SIGSEGV and SIGBUS.
uint64_t string_recover(uint64_t pc);

}  // namespace classaccess
