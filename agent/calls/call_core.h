// What enter and leave do, for the Java and the native side of call timing.
// Context: any thread, also a signal handler; the current thread's CallThread.
#pragma once

#include <cstdint>

#include "agent/calls/call_sink.h"

namespace classaccess {

extern __thread CallThread* t_call_thread __attribute__((tls_model("initial-exec")));

// The context `function` makes inside `outer`; `outer` itself if it is under way already.
uint32_t inner_context(uint32_t outer, uint32_t function);
// The thread's record stream learns of it before the next access (fault/).
void context_changed(CallThread* thread);

// The block of a function's statistics, made at its first call. Null: no memory (counted).
CallStat* make_call_stat(CallThread* thread, uint32_t function);

inline CallStat* call_stat_of(CallThread* thread, uint32_t function) {
  CallStat* block = thread->stats[function / CallThread::kStatsInBlock].load(std::memory_order_relaxed);
  return block != nullptr ? &block[function % CallThread::kStatsInBlock] : make_call_stat(thread, function);
}

// Pushes the row; waits for a moment if the ring is full.
void push_call_row(CallThread* thread, const CallRecord& record);

// An enter or leave is under way on this thread until the end of the scope.
class CallBusy {
 public:
  CallBusy(CallThread* thread, uint64_t at) : thread_(thread) {
    thread->busy = at;
    asm volatile("" ::: "memory");
  }
  ~CallBusy() {
    asm volatile("" ::: "memory");
    thread_->busy = 0;
  }
  CallBusy(const CallBusy&) = delete;

 private:
  CallThread* thread_;
};

// Null: too deep. The caller sets `start`, as the last thing.
inline CallFrame* push_call_frame(CallThread* thread, uint32_t function, uint64_t slot, uint64_t caller) {
  if (thread->depth == CallThread::kMaxFrames) {
    g_call_counters.too_deep.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  CallFrame* frame = &thread->frames[thread->depth];
  frame->slot = slot;
  frame->children = 0;
  frame->nested = 0;
  frame->number = ++thread->calls;
  frame->caller = caller;
  frame->stack = 0;
  frame->function = function;
  frame->context = thread->context;
  ++thread->depth;
  thread->entered.store(thread->entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (g_call_contexts_wanted.load(std::memory_order_relaxed)) {
    uint32_t inner = inner_context(thread->context, function);
    if (inner != thread->context) {
      thread->context = inner;
      context_changed(thread);
    }
  }
  return frame;
}

// The innermost frame ends.
inline void pop_call_frame(CallThread* thread, uint64_t end, EndedBy ended_by, const CallCost& cost) {
  CallFrame* frame = &thread->frames[--thread->depth];
  if (thread->context != frame->context) {
    thread->context = frame->context;
    context_changed(thread);
  }
  uint64_t own = cost.inside + frame->nested * cost.whole, total = end - frame->start;
  total = total > own ? total - own : 0;
  uint64_t self = total > frame->children ? total - frame->children : 0;
  if (thread->depth > 0) {
    CallFrame* outer = frame - 1;
    outer->children += total;
    outer->nested += frame->nested + 1;
  }
  if (CallStat* stat = call_stat_of(thread, frame->function)) {
    if (stat->count++ == 0 || total < stat->min) stat->min = total;
    if (total > stat->max) stat->max = total;
    stat->total += total;
    stat->self += self;
    ++stat->by_ended[static_cast<int>(ended_by)];
    ++stat->histogram[63 - __builtin_clzll(call_ns(total) | 1)];
  }
  thread->left.store(thread->left.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (g_call_rows.load(std::memory_order_relaxed)) {
    CallRecord record;
    record.start = frame->start;
    record.end = end;
    record.self = self;
    record.number = frame->number;
    record.parent = thread->depth > 0 ? (frame - 1)->number : 0;
    record.caller = frame->caller;
    record.function = frame->function;
    record.depth = thread->depth;
    record.ended_by = static_cast<uint32_t>(ended_by);
    record.total = total;
    push_call_row(thread, record);
  }
}

}  // namespace classaccess
