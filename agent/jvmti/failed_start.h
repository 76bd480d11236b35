// Tells when the process ends although no event will: a JVM whose start fails after
// Agent_OnLoad (another agent, a module that is missing, a heap that does not fit)
// leaves by exit(3) from the launcher or by _exit(2) from libjvm
// (vm_exit_during_initialization), which is replaced in its GOT.
// Context: Agent_OnLoad.
#pragma once

#include <cstdint>

namespace classaccess {

// `at_end` is called at each end of the process by these two ways, whether the start
// has failed or not, also in a forked child.
void watch_process_end(uint64_t libjvm_address, void (*at_end)());

}  // namespace classaccess
