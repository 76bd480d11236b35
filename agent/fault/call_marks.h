// Which timed calls a thread's records are made in: marks in its record stream.
//
// When a call changes the context of its thread (calls/call_sink.h), a mark goes into the buffer of the thread's
// probes, where it keeps its place among the accesses. Draining turns it into a record of kind kCallContext, if any
// access follows. What the thread records itself (a trap) comes after a drain, and asks what the context is; so does
// whoever gives it room in a full buffer, which has no place for marks.
// Context: as said at each function; no lock, no allocation.
#pragma once

#include <cstdint>

#include "agent/fault/thread_state.h"

namespace classaccess {

// A mark: a ProbeRecord of two words, the id of a row of g_probes that is no probe, and the context.
constexpr uint64_t kMarkBytes = 16;

// The stream learns that what follows is made in `context`. By the holder of the thread's DrainScope.
void tell_context(ThreadState* thread, uint32_t context);
// The context of the current thread, whose state is `thread`: before it pushes a record of its own.
void tell_own_context(ThreadState* thread);

}  // namespace classaccess
