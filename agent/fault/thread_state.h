// Per-thread state of the recording: the ring, the step in flight, counters.
// States live in a pool reserved at start; the handler claims one without
// allocating, ThreadEnd retires it, the writer recycles it once drained.
// Context: the owning thread (signal handler and callbacks) writes; the writer
// thread drains the ring and reads the counters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/base/spsc_ring.h"
#include "agent/fault/probe_buffer.h"
#include "agent/heap/resolver.h"

namespace classaccess {

// Counters of one thread, summed into `diagnostic`.
struct ThreadCounters {
  uint64_t traps = 0;
  uint64_t emulated = 0;
  uint64_t displaced = 0;
  uint64_t stepped = 0;
  uint64_t chained = 0;
  uint64_t probed = 0;  // accesses that a probe made
  uint64_t recorded = 0;
  uint64_t filtered = 0;  // executed, class not selected
  uint64_t unresolved = 0;
  uint64_t waits = 0;    // times a full ring made the thread wait
  uint64_t dropped = 0;  // only after the sink was closed (disk full)
  uint64_t self_ns = 0;  // inside the handler, waits excluded
};

enum class ThreadPhase : uint32_t {
  kFree = 0,
  kClaimed,  // being set up by its owner
  kLive,
  kEnded,  // set by ThreadEnd or by the exit path; the writer drains it, then frees it
};

enum class ThreadKind : uint8_t { kPlatform = 0, kCarrier, kVirtual };

// Whether `threads=` lets this thread be recorded. Undecided: the thread has
// trapped before its ThreadStart event named it; the drain keeps its records.
// VirtualOnly: a carrier that is excluded itself, but may run virtual threads that are not.
enum class ThreadChoice : uint8_t { kUndecided = 0, kRecorded, kExcluded, kVirtualOnly };

// Bytes of a thread's name that are kept, with the final NUL.
constexpr size_t kThreadNameBytes = 256;

// The virtual thread that a carrier was running last (virtual_threads.h).
struct MountedThread {
  int64_t java_tid = 0;
  uint64_t name_bits = 0;  // Thread.name as it lies in memory, when the name was read
  uint32_t id = 0;
};

struct ThreadState {
  std::atomic<ThreadPhase> phase{ThreadPhase::kFree};
  std::atomic<ThreadChoice> choice{ThreadChoice::kUndecided};
  ThreadKind kind = ThreadKind::kPlatform;
  uint32_t thread_id = 0;   // process-wide, from 1; never reused
  int32_t tid = 0;          // gettid
  uint64_t started_ns = 0;  // CLOCK_MONOTONIC
  std::atomic<uint64_t> ended_ns{0};
  // Name, under name_version: written by whoever made it odd.
  std::atomic<uint32_t> name_version{0};
  char name[kThreadNameBytes] = {};

  ThreadCounters counters;

  // Nesting of our handlers on it, in its thread-local storage; null: not known yet.
  std::atomic<const uint32_t*> inside{nullptr};

  ResolverHints hints;  // its JavaThread*, the last object it touched
  MountedThread mounted;
  uint32_t told_context = 0;  // of timed calls: what its record stream said last (call_marks.h)

  // With probes, under the drain lock of `probes`: the pusher need not be the owner.
  SpscRing ring;

  ProbeBuffer probes;
};

}  // namespace classaccess
