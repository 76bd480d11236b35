// Second half of the decoder: what a decoded instruction does to memory. Used by
// decode.cc only.
#pragma once

#include <cstdint>

#include "agent/x86/forms.h"
#include "agent/x86/instruction.h"

namespace classaccess {

// Extension bits of REX, VEX and EVEX, already shifted to their place in a register number.
struct Extension {
  uint8_t reg = 0;        // 8 R, 16 R'
  uint8_t index = 0;      // 8 X
  uint8_t base = 0;       // 8 B
  uint8_t vector_rm = 0;  // 16: EVEX X extends a vector in ModRM.rm
  uint8_t vsib = 0;       // 16: EVEX V' extends a vector index
};

struct Memory {
  bool short_displacement = false;  // one byte: EVEX scales it
};

// Direction, size, lanes and execution of a ModRM (or moffs) memory operand; `form` is
// null for a form that is not in the table.
void apply_form(const Form* form, const Extension& ext, const Memory& memory, Instruction* out);

// MOVS, STOS, LODS, CMPS, SCAS.
void apply_string(uint8_t opcode, Instruction* out);

// Implicit memory operands of instructions without a memory ModRM: MASKMOV, XLAT.
void apply_implicit(Prefix prefix, Instruction* out);

}  // namespace classaccess
