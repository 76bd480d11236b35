// Java bytecode, as far as moving it needs (JVM specification chapter 6).
#pragma once

#include <cstdint>

#include "agent/calls/java/class_bytes.h"

namespace classaccess::bytecode {

enum : uint8_t {
  kNop = 0,
  kLdcW = 19,
  kIinc = 132,
  kIfFirst = 153,
  kJsr = 168,
  kRet = 169,
  kTableSwitch = 170,
  kLookupSwitch = 171,
  kReturnFirst = 172,
  kReturnLast = 177,
  kInvokeVirtual = 182,
  kInvokeSpecial = 183,
  kInvokeStatic = 184,
  kNew = 187,
  kAThrow = 191,
  kWide = 196,
  kIfNull = 198,
  kIfNonNull = 199,
  kGotoW = 200,
  kJsrW = 201,
  kLast = 201,
};

inline bool is_return(uint8_t opcode) { return opcode >= kReturnFirst && opcode <= kReturnLast; }
// With a target of two bytes.
inline bool is_short_branch(uint8_t opcode) {
  return (opcode >= kIfFirst && opcode <= kJsr) || opcode == kIfNull || opcode == kIfNonNull;
}
inline bool is_wide_branch(uint8_t opcode) { return opcode == kGotoW || opcode == kJsrW; }
inline bool is_switch(uint8_t opcode) { return opcode == kTableSwitch || opcode == kLookupSwitch; }

// Bytes between a switch's opcode at `pc` and its operands.
inline uint32_t switch_padding(uint32_t pc) { return 3 - pc % 4; }

// Length of the instruction at `pc`; 0: it is none, or leaves the code.
uint32_t length_at(Bytes code, uint32_t pc);

}  // namespace classaccess::bytecode
