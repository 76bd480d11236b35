// The GS segment base of recorded threads is the distance to the twin view, so that
// a copy of any instruction with a GS prefix works on the twin (x86/displace.h). User
// code on Linux x86-64 does not use GS; a thread that does is single-stepped instead.
// Context: signal handler (the base is the interrupted thread's own).
#pragma once

#include <cstdint>

namespace classaccess {

// Once, at start: whether RDGSBASE/WRGSBASE may be executed (AT_HWCAP2).
void init_gs_base();

// True if this thread's GS base is `distance`.
bool gs_base_is(int64_t distance);

// True if this thread's GS base is `distance`, set if it was 0.
bool gs_base_ready(int64_t distance);

}  // namespace classaccess
