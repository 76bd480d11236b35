// Call timing: where timed calls go. What hooks native functions, what instruments Java
// methods, and the drain meet here.
//
// A timed call is a CallFrame on its thread's CallThread from enter to leave. What is known of
// all calls of a function (CallStat) is added up in the thread itself; single rows (CallRecord)
// go through a ring of the thread's own while g_call_rows says that rows are still wanted. A full ring is waited for
// until the writer has taken nothing for a while (native: 0.2 s, a timed function may hold any lock; Java: a minute), then
// the row is dropped and counted (CallCounters::rows_dropped); CallStat stays exact.
//
// Which classes a call touches: the functions under way on a thread, each once, outermost first,
// are its context, a number of g_call_contexts. The record stream of the thread (classaccess/record.h) has a record of
// kind kCallContext before the first access made under another context; it is exact also past `events=N`.
//
// Times are ticks of the time-stamp counter (call_clock.h turns them into ns); without an
// invariant one they are ns of CLOCK_MONOTONIC. Own cost is subtracted from durations.
//
// Context: enter, leave: any thread, also a signal handler; no lock, no allocation, no vector
// register. Counters and rings are read by the writer thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"
#include "agent/calls/call_clock.h"

namespace classaccess {

enum class FunctionKind : uint8_t { kJava = 0, kNative };
enum class Loaded : uint8_t { kAlready = 0, kLater };
enum class EndedBy : uint8_t { kReturn = 0, kException, kUnwound };

// A row of `function`; id is its number in g_call_functions. Texts live as long as the process.
struct CallFunction {
  std::atomic<bool> ready{false};  // published: everything else is set, but for `refused`
  FunctionKind kind = FunctionKind::kJava;
  Loaded loaded = Loaded::kAlready;
  const char* name = "";                      // `com.acme.Order.total`, `inflate`
  const char* library = "";                   // file name; "": Java
  uint64_t address = 0;                       // native: of its entry; 0: Java
  std::atomic<const char*> refused{nullptr};  // why it is not timed; may come later
};
constexpr uint32_t kMaxCallFunctions = 1u << 20;  // of all recordings of the process: numbers are not used again
extern AppendTable<CallFunction> g_call_functions;
// The first of this recording: what lies before is of earlier ones.
extern std::atomic<uint32_t> g_first_call_function;
// A filled and published row (texts are copied); 0: the table is full (counted, said once). Any normal thread.
uint32_t add_call_function(FunctionKind kind, Loaded loaded, const char* name, const char* library, uint64_t address,
                           const char* refused = nullptr);
void refuse_call_function(uint32_t id, const char* why);

// Functions under way, each once: `outer` and one more. 0: none.
struct CallContext {
  std::atomic<bool> ready{false};
  uint32_t outer = 0;
  uint32_t function = 0;
};
constexpr uint32_t kMaxCallContexts = 1u << 20;
extern AppendTable<CallContext> g_call_contexts;

// All calls of one function by one thread that have ended. Written by the thread alone.
struct CallStat {
  static constexpr int kBuckets = 64;
  uint32_t function = 0;  // set before the block is published
  uint64_t count = 0;
  uint64_t untimed = 0;                            // entered, but not by a call that could be timed
  uint64_t total = 0, self = 0, min = 0, max = 0;  // ticks, own cost subtracted
  uint64_t by_ended[3] = {};                       // EndedBy; sum: count
  uint64_t histogram[kBuckets] = {};               // floor(log2(ns)); [0]: 0 and 1 ns
};

// One call that has ended, for a row of `call`.
struct CallRecord {
  uint64_t start, end;  // ticks as measured, for call_ns_since_boot
  uint64_t self;        // ticks, own cost subtracted
  uint64_t number;      // of this call in its CallThread, from 1, in order of start
  uint64_t parent;      // number of the timed call round it; 0: none
  uint64_t caller;      // native: address behind the call instruction; 0: Java
  uint32_t function;
  uint32_t depth : 24;  // timed calls round it
  uint32_t ended_by : 8;
  uint64_t total;  // ticks, own cost subtracted
};
static_assert(sizeof(CallRecord) == 64, "one cache line");

class CallRing {
 public:
  static constexpr uint32_t kCapacity = 8192;
  bool push(const CallRecord& record) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) >= kCapacity) return false;
    records_[head % kCapacity] = record;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  uint64_t pending() const { return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_acquire); }
  // Writer: sink(record) for each.
  template <typename Sink>
  uint64_t drain(Sink&& sink) {
    uint64_t tail = tail_.load(std::memory_order_relaxed), head = head_.load(std::memory_order_acquire);
    for (uint64_t i = tail; i != head; ++i) sink(static_cast<const CallRecord&>(records_[i % kCapacity]));
    tail_.store(head, std::memory_order_release);
    return head - tail;
  }

 private:
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) CallRecord records_[kCapacity];
};

struct CallFrame {
  uint64_t slot;      // native: where its return address lies; Java: 0
  uint64_t start;     // ticks
  uint64_t children;  // ticks of timed calls inside, own cost subtracted
  uint64_t nested;    // number of timed calls inside, at any depth: each costs something
  uint64_t number;
  uint64_t caller;
  uint32_t function;
  uint32_t context;  // in force before it
  uint64_t stack;    // Java: where the stack was at its start, 0: not known; native: 0
};

// Of one thread (platform or native), or of one virtual thread: Java timing may switch them at
// mount and unmount (set_call_thread).
struct CallThread {
  static constexpr uint32_t kMaxFrames = 1u << 16;  // deeper calls are counted as untimed

  std::atomic<uint32_t> phase{0};  // 0 free, 1 live, 2 ended (the writer takes the rest, then frees it), 3 in between
  std::atomic<uint32_t> thread_id{0};         // ThreadState::thread_id or ThreadPool::next_thread_id; 0: not known yet
  int32_t tid = 0;                            // gettid; virtual: 0
  uint32_t virtual_id = 0;                    // VirtualThreads; 0: not a virtual thread
  uint32_t context = 0;                       // in force now
  uint32_t depth = 0;                         // frames in use
  uint64_t calls = 0;                         // CallFrame::number of the last one
  std::atomic<uint64_t> entered{0}, left{0};  // timed calls: equal when none is under way
  uint64_t busy = 0;                          // stack address of an enter or leave under way; 0: none
  bool row_lost = false;                      // the ring was full for too long: not waited for again until it has room
  CallFrame* frames = nullptr;
  std::atomic<CallStat*>* stats = nullptr;  // by function id / kStatsInBlock; null: none yet
  CallRing* ring = nullptr;

  static constexpr uint32_t kStatsInBlock = 8;
  // Writer: null if it has none of that function.
  const CallStat* stat(uint32_t function) const {
    const CallStat* block = stats[function / kStatsInBlock].load(std::memory_order_acquire);
    return block != nullptr ? &block[function % kStatsInBlock] : nullptr;
  }
};

struct CallCounters {
  std::atomic<uint64_t> rows_dropped{0};    // single rows only, the ring was full for too long
  std::atomic<uint64_t> threads_full{0};    // calls of threads that found no CallThread
  std::atomic<uint64_t> contexts_full{0};   // calls whose context found no row: the outer one's
  std::atomic<uint64_t> memory_full{0};     // calls not added up: no room for a CallStat
  std::atomic<uint64_t> functions_full{0};  // functions that found no row: not timed
  std::atomic<uint64_t> too_deep{0};        // untimed: kMaxFrames
  std::atomic<uint64_t> busy{0};            // untimed: inside an enter or leave of the same thread (signal handler)
  std::atomic<uint64_t> no_shadow{0};       // untimed: the stack's shadow could not be mapped
  std::atomic<uint64_t> other_caller{0};    // untimed: not entered by a call of this function
  std::atomic<uint64_t> code_cache{0};      // untimed: called from code whose return address HotSpot reads
};
extern CallCounters g_call_counters;

// Before the first call, once a process: reserves the tables, calibrates the clock, measures
// the own cost. False: no memory.
bool start_call_sink();
// A new recording: statistics and functions begin anew. No call is under way.
void reset_call_sink();

// Rows of single calls are still wanted (`events=N`). Cleared by the writer, also when it ends or fails.
extern std::atomic<bool> g_call_rows;
// Contexts are kept up and told to the record stream (mode=access).
extern std::atomic<bool> g_call_contexts_wanted;
// Calls are timed; false: enter and leave do nothing.
extern std::atomic<bool> g_calls_on;

// The current thread's; claimed at its first call. Null: no more are to be had.
CallThread* call_thread();
// Another one for the current thread from now on (a virtual thread was mounted); null: its own again.
void set_call_thread(CallThread* thread);
// One that belongs to no thread yet, for a virtual thread. Null: none left.
CallThread* claim_call_thread(int32_t tid, uint32_t virtual_id);
// Its calls are over; those still under way end as kUnwound. For a platform thread also done
// by a pthread key's destructor.
void end_call_thread(CallThread* thread);

// Writer: every CallThread live or ended.
constexpr uint32_t kMaxCallThreads = 1u << 15;
extern CallThread* g_call_threads;
extern std::atomic<uint32_t> g_call_threads_end;
template <typename F>
void for_each_call_thread(F&& f) {
  uint32_t end = g_call_threads_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < end; ++i) {
    uint32_t phase = g_call_threads[i].phase.load(std::memory_order_acquire);
    if (phase == 1 || phase == 2) f(g_call_threads[i]);
  }
}
// Writer only: an ended one whose ring is empty and whose statistics have been written.
void recycle_call_thread(CallThread* thread);

// --- Java methods. Native ones: calls/native_entry.h.
// False: not timed (no leave must follow).
// `stack`: a stack address of the caller's, at enter and leave of a call the same unless its frame was replaced; 0 on
// a virtual thread, whose stack moves.
bool call_enter_java(uint32_t function, uint64_t stack = 0);
// The innermost call of `function` that is under way, and all inside it (unwound). Nothing if
// there is none.
void call_leave_java(uint32_t function, EndedBy ended_by, uint64_t stack = 0);

// Ticks of own cost that are subtracted from each call, and from each call round it for every
// call inside: for `diagnostic`.
struct CallCost {
  uint64_t inside = 0;  // between the two clock reads of an empty function
  uint64_t whole = 0;   // a timed call costs its caller
};
extern CallCost g_native_call_cost, g_java_call_cost;

}  // namespace classaccess
