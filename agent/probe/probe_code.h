// The code of a probe: makes a record, performs the instruction on the twin view, jumps
// back. Flags and registers are as the program left them when the instruction itself runs.
//
//   save two scratch registers            mov fs:[save], r
//   address of the operand                lea a, [base + index * scale + displacement]
//   cursor of this thread                 mov byte fs:[busy], 1; mov c, fs:[cursor]
//   the record                            mov [c], head; mov [c+8], a; ...
//   cursor += record                      lea c, [c+n]; mov fs:[cursor], c; mov byte fs:[busy], 0
//   restore the scratch registers
//   the instruction behind a GS prefix    (GS base = distance to the twin: x86/displace.h)
//   jmp behind the site
//   the plain instruction; jmp behind the site     for an address outside the heap
//
// In a library most addresses are outside the heap, and many threads are not recorded: there
// the record is made only if the address lies in the window that the thread is watched in.
// That needs flags (LAHF, SETO) and registers, saved on the stack behind the red zone:
//
//   lea rsp, [rsp-128]; push rax, a, c; lea a, operand; lahf; seto al
//   mov c, a; sub c, fs:[low]; cmp c, fs:[bytes]; jae leave; cmp byte fs:[busy], 0; jne leave
//   the record as above; add al, 127; sahf; pop c, a, rax; lea rsp, [rsp+128]
//   the instruction behind a GS prefix; jmp; the plain instruction; jmp
//   leave: add al, 127; sahf; pop ...; lea rsp, [rsp+128]
//   the plain instruction; jmp behind the site     it is not recorded yet, and may trap
//
// Context: signal handler and any thread; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// Words of a record, 8 bytes each. `head` tells which probe's it is, and what it holds.
struct ProbeRecord {
  uint64_t head;
  uint64_t address;
  // Base register if the operand has an index; mask register if it has one; then, in the
  // interpreter, r13 and [rbp-24].
  uint64_t more[4];
};

// Bits of the head: the probe's id, and how the words behind the address are to be read.
constexpr uint64_t kProbeIdMask = (1 << 20) - 1;
constexpr int kRecordWordsShift = 20;             // number of words, 3 bits
constexpr uint64_t kRecordHasBase = 1 << 23;      // more[0] is the base of an indexed operand
constexpr uint64_t kRecordInterpreted = 1 << 24;  // the last two are r13 and [rbp-24]
constexpr uint32_t probe_id_of(uint64_t head) { return static_cast<uint32_t>(head & kProbeIdMask); }
constexpr uint32_t record_words_of(uint64_t head) { return head >> kRecordWordsShift & 7; }
constexpr uint64_t record_bytes_of(uint64_t head) { return 8 * (head >> kRecordWordsShift & 7); }

// What its records are read by, out of the instruction.
struct ProbeOperand {
  int32_t displacement = 0;
  uint32_t size = 0;
  Op op = Op::kLoad;
  uint8_t scale = 1;
  bool has_index = false;
  bool has_base = false;   // beside an index: it is in the record
  uint8_t lane_bytes = 0;  // with a mask; 0: whole
};
ProbeOperand probe_operand(const Instruction& instruction);

// Offsets in the code.
struct ProbeShape {
  uint8_t pushed = 0;       // libraries: behind the last push; 0: nothing is pushed
  uint8_t method_load = 0;  // of mov a, [rbp-24] (interpreter); 0: none
  uint8_t method_load_end = 0;
  uint8_t access = 0;           // of the GS copy: registers are the program's from here on
  uint8_t plain = 0;            // of the plain copy behind a record
  uint8_t leave = 0;            // libraries: restores what was saved; no record is made
  uint8_t unrecorded = 0;       // libraries: the plain copy behind that; else the code's end, as `leave`
  uint8_t cursor_register = 0;  // that points at the record while it is written
  uint8_t address_register = 0;
  uint8_t record_words = 0;
};

constexpr size_t kMaxProbeCode = 256;

// True if the instruction can run in a probe: one operand that LEA can compute, whole or in
// lanes of a mask register.
bool can_probe(const Instruction& instruction);

// True if its record has the mask register.
bool has_mask(const Instruction& instruction);

// Where a thread keeps what its probes need: offsets from the FS base.
struct ThreadOffsets {
  int32_t probe_thread = 0;  // ProbeThread
  int32_t watched = 0;       // WatchedWindow; libraries only
};

enum class ProbeKind : uint8_t { kCompiled, kInterpreted, kLibrary };

// Writes the code that will run at `at` for the site at `pc`; returns its length and fills
// *shape. 0 if can_probe says no or `pc` is out of reach.
size_t write_probe(const Instruction& instruction, uint64_t pc, uint64_t at, uint32_t probe_id, ProbeKind kind,
                   const ThreadOffsets& offsets, uint8_t* to, ProbeShape* shape);

}  // namespace classaccess
