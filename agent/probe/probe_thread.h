// What a probe needs of its thread, in thread-local storage that it reaches by FS.
//
// `cursor` is where the thread's next record goes: null until the thread's first probe
// (whose store then faults and gets it a buffer), inside its own buffer for a recorded
// thread, in the shared discard buffer for any other. The two save slots hold the scratch
// registers while a probe makes its record: the stack is not touched, so no guard page and
// no red zone is met. Only code of the code cache is probed, which no signal handler runs,
// so the slots are never used twice at once.
// Context: probes, and the thread's own signal handler.
#pragma once

#include <cstdint>

namespace classaccess {

struct ProbeThread {
  uint64_t cursor = 0;
  uint64_t save[2] = {};
};

extern __thread ProbeThread t_probe __attribute__((tls_model("initial-exec")));

// Offset of t_probe from the FS base: the same on every thread.
int32_t probe_thread_offset();

}  // namespace classaccess
