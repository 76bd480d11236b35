#include "agent/calls/call_core.h"

namespace classaccess {

// Without a record stream (tests); the agent's is in fault/call_marks.cc.
__attribute__((weak)) void context_changed(CallThread*) {}

}  // namespace classaccess
