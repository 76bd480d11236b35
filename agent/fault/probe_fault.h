// A fault inside a probe, told apart.
//
// In the part that makes the record: the buffer is full (or the thread has none yet), or the
// interpreter's frame cannot be read. At the instruction: its address is no heap address, so
// the plain copy is run. In the plain copy: a library's access that no record was made of, or
// the program's own fault, which belongs to the site: HotSpot gets it with the site's PC, the
// registers and the address as without us, and, where it may look at the bytes there, with the
// patch taken back.
// Context: signal handler of the faulting thread.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace classaccess {

enum class ProbeFault : uint8_t {
  kNotOurs,     // not inside a probe
  kResume,      // mended: go on
  kNeedsRoom,   // call probe_has_room with a new cursor
  kClosedPage,  // the plain copy met a closed page; the record is made
  kUnrecorded,  // the plain copy met a closed page; it is not
  kChain,       // the program's: the context says so
};

ProbeFault probe_fault(int signal, siginfo_t* info, ucontext_t* uc);

// Moves the record that is being written to `room` and lets the thread go on there.
void probe_has_room(const siginfo_t* info, ucontext_t* uc, uint64_t room);

}  // namespace classaccess
