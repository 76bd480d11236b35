#include "agent/fault/thread_pool.h"

#include <new>

#include "agent/base/clock.h"
#include "agent/base/reserve.h"

namespace classaccess {

bool ThreadPool::create() {
  // Zero pages are valid free states: phase kFree is 0, and claim() sets the rest.
  states_ = reserve_array<ThreadState>(kCapacity);
  return states_ != nullptr;
}

ThreadState* ThreadPool::claim(int32_t tid) {
  for (uint32_t i = 0; i < kCapacity; ++i) {
    ThreadState& state = states_[i];
    ThreadPhase expected = ThreadPhase::kFree;
    if (state.phase.load(std::memory_order_relaxed) != ThreadPhase::kFree ||
        !state.phase.compare_exchange_strong(expected, ThreadPhase::kClaimed, std::memory_order_acq_rel)) {
      continue;
    }
    state.choice.store(ThreadChoice::kUndecided, std::memory_order_relaxed);
    state.kind = ThreadKind::kPlatform;
    state.thread_id = next_thread_id();
    state.tid = tid;
    state.started_ns = monotonic_ns();
    state.ended_ns.store(0, std::memory_order_relaxed);
    state.name_version.store(0, std::memory_order_relaxed);
    state.name[0] = '\0';
    state.counters = {};
    state.hints = {};
    state.mounted = {};
    state.told_context = 0;
    state.inside.store(nullptr, std::memory_order_relaxed);
    state.phase.store(ThreadPhase::kLive, std::memory_order_release);
    uint32_t high = high_.load(std::memory_order_relaxed);
    while (high <= i && !high_.compare_exchange_weak(high, i + 1, std::memory_order_acq_rel)) {
    }
    return &state;
  }
  return nullptr;
}

void ThreadPool::recycle(ThreadState* state) { state->phase.store(ThreadPhase::kFree, std::memory_order_release); }

}  // namespace classaccess
