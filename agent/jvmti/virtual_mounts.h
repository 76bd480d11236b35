// When virtual threads mount and unmount: what a carrier's probes have recorded belongs to
// the one it ran (fault/probed_access.h, mounted).
//
// By HotSpot's extension events com.sun.hotspot.events.VirtualThreadMount and ...Unmount
// (21 and later), which need the capability can_support_virtual_threads.
// Context: watch: before recording; the callbacks: the carrier.
#pragma once

#include <jvmti.h>

namespace classaccess {

// Adds the capability to those that are asked for; in Agent_OnLoad. `major`: of the JDK.
void want_virtual_mounts(int major, jvmtiCapabilities* wanted);

// False if this JVM has no such events.
bool watch_virtual_mounts(jvmtiEnv* jvmti);

// The events off again.
void ignore_virtual_mounts(jvmtiEnv* jvmti);

}  // namespace classaccess
