// The JVMTI callbacks, which forward to the one Recording.
// Context: Agent_OnLoad, before any event is enabled.
#pragma once

#include <jvmti.h>

namespace classaccess {

void set_event_callbacks(jvmtiEnv* jvmti);

}  // namespace classaccess
