// Timed calls of virtual threads: a virtual thread that is inside of one has a CallThread of its own, which goes from
// carrier to carrier with it.
//
// It gets one at its first timed call and gives it back when it unmounts outside of any, so that as many are in use as
// virtual threads sleep inside. When none is left its calls are not timed (CallCounters::threads_full).
// Context: on the carrier, in a callback or a native method of ours; not a signal handler.
#pragma once

#include "agent/fault/thread_state.h"
#include "agent/fault/virtual_threads.h"

namespace classaccess {

// Before calls are timed. `watched`: mounted() will be called. False: no memory. `threads` null: there are none.
bool start_virtual_calls(VirtualThreads* threads, bool watched);
// The carrier is about to unmount its virtual thread, or has mounted one (JVMTI event).
void calls_mounted(ThreadState* carrier, bool now);
// Before a call of the carrier enters or leaves: its CallThread is that of the virtual thread it runs. False: whoever
// it runs is not to be recorded, or has no CallThread.
bool choose_call_thread(ThreadState* carrier, bool entering);

}  // namespace classaccess
