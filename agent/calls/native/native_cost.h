// What a timed native call costs: measured on an empty function of ours, hooked like any other.
// Context: before other threads' calls are timed, after prepare_patching.
#pragma once

namespace classaccess {

// Fills g_native_call_cost. Once a process; later calls do nothing. What it cannot hook costs 0.
void measure_native_cost();

}  // namespace classaccess
