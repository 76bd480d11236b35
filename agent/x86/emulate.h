// Performs an Execute::kEmulate instruction: moves, ALU forms, exchanges.
// Context: signal handler. The operation itself is run by the CPU, so flags are its own.
#pragma once

#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// `memory` is where the operand is accessed: the effective address translated to
// the twin view. The access is one of operand size, locked where the instruction
// is (LOCK, XCHG), so it is as atomic as the original. Registers, status flags and
// rip are updated.
// `value`, if not null, gets up to 8 bytes, zero-extended: what was loaded or stored;
// for a read-modify-write what it left in memory (another thread may have changed
// that again after INC, DEC, NOT, NEG and ALU forms, which are read back).
// False, with nothing changed, if this form is not emulated. A fault on `memory` is
// not caught.
bool emulate(const Instruction& instruction, CpuState* state, void* memory, uint64_t* value);

}  // namespace classaccess
