// The code of a probe: makes a record, performs the instruction on the twin view, jumps
// back. No flag is touched, no stack used; registers are as the program left them when
// the instruction itself runs.
//
//   save two scratch registers            mov fs:[save], r
//   address of the operand                lea a, [base + index * scale + displacement]
//   cursor of this thread                 mov c, fs:[cursor]
//   the record                            mov [c], id; mov [c+8], a; ...
//   cursor += record                      lea c, [c+n]; mov fs:[cursor], c
//   restore the scratch registers
//   the instruction behind a GS prefix    (GS base = distance to the twin: x86/displace.h)
//   jmp behind the site
//   the plain instruction; jmp behind the site     for an address outside the heap
//
// Context: signal handler and any thread; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// Words of a record, 8 bytes each. `id` first, so that a record tells its own length.
struct ProbeRecord {
  uint64_t probe_id;
  uint64_t address;
  uint64_t more[3];  // base register if the operand has an index; then, in the interpreter, r13 and [rbp-24]
};

// Offsets in the code.
struct ProbeShape {
  uint8_t method_load = 0;      // of mov a, [rbp-24] (interpreter); 0: none
  uint8_t method_load_end = 0;
  uint8_t access = 0;           // of the GS copy: registers are the program's from here on
  uint8_t plain = 0;            // of the plain copy
  uint8_t end = 0;
  uint8_t cursor_register = 0;  // that points at the record while it is written
  uint8_t address_register = 0;
  uint8_t record_words = 0;
};

constexpr size_t kMaxProbeCode = 256;

// True if the instruction can run in a probe: one plain operand that LEA can compute.
bool can_probe(const Instruction& instruction);

// Writes the code that will run at `at` for the site at `pc`; returns its length and fills
// *shape. 0 if can_probe says no or `pc` is out of reach. `thread_offset`: of ProbeThread
// from the FS base.
size_t write_probe(const Instruction& instruction, uint64_t pc, uint64_t at, uint32_t probe_id, bool interpreted,
                   int32_t thread_offset, uint8_t* to, ProbeShape* shape);

}  // namespace classaccess
