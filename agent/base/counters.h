// Process-wide counters and the state of the recording, shared by all layers.
// Context: any thread and signal handler; relaxed atomics.
#pragma once

#include <atomic>
#include <cstdint>

namespace classaccess {

// Rows of the `diagnostic` table that no thread owns. Per-thread ones are in
// ThreadCounters (fault/thread_state.h).
#define CLASSACCESS_COUNTERS(X)                                                                                     \
  X(foreign_opened, "threads")     /* non-Java threads whose key was opened */                                      \
  X(unrecorded, "traps")           /* of threads that are not recorded (mprotect) */                                \
  X(criticals, "arrays")           /* JNI critical arrays and strings handed out */                                 \
  X(handlers_replaced, "handlers") /* of our signals, found in front of ours */                                     \
  X(handlers_behind, "handlers")   /* of our signals, taken in by sigaction */                                      \
  X(kernel_runs, "runs")           /* of the heap, touched by system calls */                                       \
  X(windows, "windows")            /* times a page was opened for an access */                                      \
  X(no_twin, "heaps")              /* 1: there is no twin view (twin=off) */                                        \
  X(commits, "ranges")             /* heap commits made shared and closed */                                        \
  X(uncommits, "ranges")           /* heap ranges given back */                                                     \
  X(heap_walks, "regions")         /* lazy walks for object starts */                                               \
  X(probes_laid, "probes")         /* instructions that became inline probes */                                     \
  X(probes_relaid, "probes")       /* again, because a neighbour became one */                                      \
  X(probes_taken_back, "probes")                                                                                    \
  X(sites_unfit, "sites")         /* not probed: the form cannot run in a probe */                                  \
  X(sites_immediate, "sites")     /* not probed: an immediate that may be an oop */                                 \
  X(sites_successor, "sites")     /* not probed: the bytes behind may change */                                     \
  X(sites_no_room, "sites")       /* not probed: no free address in reach */                                        \
  X(sites_bytes_changed, "sites") /* not probed: the code changed meanwhile */                                      \
  X(traps_unfit, "traps")         /* at sites that are not probed, by reason */                                     \
  X(traps_immediate, "traps")                                                                                       \
  X(traps_successor, "traps")                                                                                       \
  X(traps_no_room, "traps")                                                                                         \
  X(traps_bytes_changed, "traps")                                                                                   \
  X(traps_native, "traps")              /* in libraries, where those are not probed */                              \
  X(library_texts_left_out, "segments") /* beyond those that are known: their code is not probed */                 \
  X(probes_stuck, "probes")             /* could not be taken back where HotSpot looks at the code */               \
  X(probes_outside, "probes")           /* taken back: their site mostly met addresses outside the heap */          \
  X(pages_merged, "recordings")         /* mode=pages: 1: larger pages or a smaller window than asked for */        \
  X(page_windows, "windows")            /* mode=pages: that touches were counted in, the common one among them */   \
  X(page_windows_shared, "threads")     /* mode=pages: that had no key of their own and shared the common window */ \
  X(page_opens, "pages")                /* mode=pages: system calls that opened a page */                           \
  X(page_reopens, "pages")              /* in the window, but closed when they were touched */                      \
  X(page_opens_refused, "pages")        /* the kernel has no mapping left: stay closed, executed on the twin */     \
  X(page_closes_refused, "pages")       /* stay open: later touches are not seen */                                 \
  X(decode_failures, "traps")           /* instructions that were not decoded */                                    \
  X(table_full, "rows")                 /* class, method, site rows that found no room */                           \
  X(threads_full, "threads")            /* threads that found no state: not recorded */                             \
  X(virtual_threads_full, "accesses")   /* of virtual threads that found no row: given to the carrier */

struct Counters {
#define X(name, unit) std::atomic<uint64_t> name{0};
  CLASSACCESS_COUNTERS(X)
#undef X
};
extern Counters g_counters;
// Before a recording: all of the above, and the collections' numbers, begin anew.
void reset_counters();

inline void count(std::atomic<uint64_t>& counter, uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }

enum class RecordingState : int {
  kOff = 0,  // before VMInit
  kOn,
  kEnding,  // no new records; threads that wait with a full ring still get theirs in
  kClosed,  // over, or the sink failed: each thread's next trap opens its key for good
};
extern std::atomic<RecordingState> g_recording;

// Accesses still become rows of their own (`events=N` is not used up). Cleared by the writer.
extern std::atomic<bool> g_single_rows;

// Number of collections that have started; AccessRecord::gc_id.
extern std::atomic<uint32_t> g_gc_id;
// Number of the last one that has finished; equal to g_gc_id outside of pauses.
extern std::atomic<uint32_t> g_gc_finished;

}  // namespace classaccess
