// The decoder: bytes -> Instruction, driven by instruction_forms.inc.
// Context: signal handler and any thread. Reads only the bytes given; no state.
//
// Complete in length for legacy, VEX and EVEX encodings of 64-bit mode (not 3DNow!,
// XOP, APX). Direction and size come from the table; a memory form that it does not
// list has size 0 and Execute::kStep.
// Source: Intel SDM vol. 2, chapter 2 and appendix A; checked against the CPU by
// tests/x86.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// False if the bytes are no valid instruction or more than `available` (at most 15
// are looked at); *out is then unspecified.
bool decode(const uint8_t* bytes, size_t available, Instruction* out);

}  // namespace classaccess
