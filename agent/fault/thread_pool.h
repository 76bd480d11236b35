// The pool of ThreadStates. Reserved once; a state's pages are touched only when
// it is used.
// Context: claim: signal handler or callback of the thread that will own it.
// for_each, recycle: the writer thread.
#pragma once

#include "agent/fault/thread_state.h"

namespace classaccess {

class ThreadPool {
 public:
  static constexpr uint32_t kCapacity = 8192;

  // Not in a signal handler.
  bool create();

  // A free state, phase kLive, with a fresh thread_id, tid and started_ns set;
  // nullptr if all are taken.
  ThreadState* claim(int32_t tid);

  // A number that no thread has had.
  uint32_t next_thread_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // Every state in phase kLive or kEnded, in order of slots.
  template <typename F>
  void for_each(F&& f) {
    uint32_t end = high_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < end; ++i) {
      if (states_[i].phase.load(std::memory_order_acquire) >= ThreadPhase::kLive) f(states_[i]);
    }
  }

  uint32_t index_of(const ThreadState* state) const { return static_cast<uint32_t>(state - states_); }

  // Writer only: a kEnded state whose ring is empty becomes kFree.
  void recycle(ThreadState* state);

 private:
  ThreadState* states_ = nullptr;
  std::atomic<uint32_t> high_{0};
  std::atomic<uint32_t> next_id_{1};
};

}  // namespace classaccess
