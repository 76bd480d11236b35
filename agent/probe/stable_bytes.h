// Which bytes of HotSpot's code may be relied on not to change.
//
// HotSpot rewrites, while code is in use: displacements of calls and of unconditional
// jumps, 4 and 8 byte immediates (oops, inline caches, nmethod entry barriers), NOPs
// (post-call nops, patchable entries). Opcodes, ModRM, displacements of operands, short
// immediates and conditional jumps stay.
// Source: share/code/nativeInst_x86, nmethod entry barriers, post-call NOPs (21 and later).
// Context: signal handler; pure.
#pragma once

#include <cstddef>

#include "agent/x86/decode.h"

namespace classaccess {

// Whether the first `wanted` bytes of the instruction at `bytes` (as far as it reaches) are
// stable; *length is the instruction's.
inline bool bytes_are_stable(const uint8_t* bytes, size_t available, size_t wanted, size_t* length) {
  Instruction in;
  if (!decode(bytes, available, &in)) return false;
  *length = in.length;
  if (wanted > in.length) wanted = in.length;
  // int3 fills what is not code yet.
  if (in.map == OpcodeMap::k1Byte && in.encoding == Encoding::kLegacy) {
    uint8_t op = in.opcode;
    if (op == 0xcc || op == 0x90) return false;
    // A jump may be a C1 patching stub's, which HotSpot writes over from its first byte.
    if (op == 0xe9) return false;
    if (op == 0xe8) return wanted <= in.length - 4u;
    bool long_immediate = (op >= 0xb8 && op <= 0xbf) || op == 0xc7 || op == 0x81 || op == 0x69 || op == 0x68 ||
                          (op < 0x40 && (op & 7) == 5) || op == 0xa9 || (op == 0xf7 && ((in.modrm >> 3) & 7) < 2);
    if (long_immediate) {
      size_t immediate = op >= 0xb8 && op <= 0xbf && in.rex_w ? 8 : in.operand16 ? 2 : 4;
      return wanted + immediate <= in.length;
    }
    if (op >= 0xa0 && op <= 0xa3) return false;  // an address
  }
  if (in.map == OpcodeMap::k0F && in.encoding == Encoding::kLegacy && in.opcode == 0x1f) return false;
  return true;
}

}  // namespace classaccess
