// Displaced copies: the instruction's own bytes behind a GS prefix, then a jump to
// the next instruction. The thread's GS base is the distance between the heap and
// its twin, so the copy does to the twin what the original would do to the heap,
// with all state (flags, vectors, masks) intact. A copy is immutable and may be
// shared by all threads.
// Context: signal handler and any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// Bytes a copy needs: 15 of instruction and prefix, 14 of jump.
constexpr size_t kMaxDisplaced = 32;

// True for kDisplace and kEmulate (any emulated form may be displaced as well). False for
// the rest, an FS or GS override, a RIP-relative operand, more than 14 bytes.
bool can_displace(const Instruction& instruction);

// Writes the copy and returns its length, at most kMaxDisplaced; 0 if can_displace
// says no. `next_pc` is where the thread goes on: the address behind the original.
// The copy holds no address of its own: it may be written to a buffer and moved.
size_t write_displaced(const Instruction& instruction, uint64_t next_pc, uint8_t* to);

// Offset of the jump in the copy: a thread whose PC is there has done the access.
size_t displaced_jump_offset(const Instruction& instruction);

}  // namespace classaccess
