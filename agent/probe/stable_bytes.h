// Which bytes of HotSpot's code may be relied on not to change.
//
// HotSpot rewrites, while code is in use: displacements of calls, immediates of 4 and 8 bytes
// (oops, inline caches, nmethod entry barriers), NOPs behind a call, in C1's code the
// unconditional jumps and NOPs of patching stubs. Opcodes, ModRM, displacements of operands,
// short immediates and conditional jumps stay.
// Source: share/code/nativeInst_x86, nmethod entry barriers, post-call NOPs (21 and later).
// Context: signal handler; pure.
#pragma once

#include <cstddef>

#include "agent/x86/decode.h"

namespace classaccess {

// Whether the first `wanted` bytes of the instruction at `bytes` (as far as it reaches) are
// stable; *length is the instruction's. It does not stand behind a call. `patched`: the code has
// patching stubs.
inline bool bytes_are_stable(const uint8_t* bytes, size_t available, size_t wanted, bool patched, size_t* length) {
  Instruction in;
  if (!decode(bytes, available, &in)) return false;
  *length = in.length;
  if (wanted > in.length) wanted = in.length;
  // int3 fills what is not code yet.
  if (in.map == OpcodeMap::k1Byte && in.encoding == Encoding::kLegacy) {
    uint8_t op = in.opcode;
    if (op == 0xcc) return false;
    if (patched && (op == 0x90 || op == 0xe9)) return false;
    if (op == 0xe8) return wanted <= in.length - 4u;
    // MOV and CMP have oops, CMP with a ModRM the guard of an entry barrier; arithmetic has neither.
    bool mov = (op >= 0xb8 && op <= 0xbf) || op == 0xc7, cmp = op == 0x3d;
    bool long_immediate = mov || cmp || op == 0x68 || (op == 0x81 && (in.modrm >> 3 & 7) == 7);
    // No object lies in the first page; 0 is written before an oop is known.
    if ((mov || cmp) && !in.rex_w && in.immediate - 1 < 511) return true;
    if (long_immediate) {
      size_t immediate = op >= 0xb8 && op <= 0xbf && in.rex_w ? 8 : in.operand16 ? 2 : 4;
      return wanted + immediate <= in.length;
    }
    if (op >= 0xa0 && op <= 0xa3) return false;  // an address
  }
  if (patched && in.map == OpcodeMap::k0F && in.encoding == Encoding::kLegacy && in.opcode == 0x1f) return false;
  return true;
}

}  // namespace classaccess
