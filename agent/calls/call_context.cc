#include "agent/calls/call_core.h"

namespace classaccess {

void context_changed(CallThread*) {}

}  // namespace classaccess
