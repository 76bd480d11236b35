// What a probe needs of its thread, in thread-local storage that it reaches by FS.
//
// `cursor` is where the thread's next record goes: null until the thread's first probe
// (whose store then faults and gets it a buffer), inside its own buffer for a recorded
// thread, in the shared discard buffer for any other. `busy` while a record is being made: a
// probe of a library that a signal handler runs just then makes none, its access traps instead.
//
// The two save slots hold the scratch registers of a probe in the code cache, which no signal
// handler runs: they are never used twice at once. There the stack is not touched, so no guard
// page is met. Libraries are run by signal handlers: their probes save on the stack.
// Context: probes, and the thread's own signal handler.
#pragma once

#include <cstdint>

namespace classaccess {

struct ProbeThread {
  uint64_t cursor = 0;
  uint64_t save[2] = {};
  uint8_t busy = 0;
};

extern __thread ProbeThread t_probe __attribute__((tls_model("initial-exec")));

// Offset of t_probe from the FS base: the same on every thread.
int32_t probe_thread_offset();

}  // namespace classaccess
