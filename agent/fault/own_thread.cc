#include "agent/fault/own_thread.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/queue_signal.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/safe_load.h"
#include "agent/fault/fault_handler.h"
#include "agent/fault/java_thread.h"
#include "agent/fault/probed_access.h"
#include "agent/fault/signal_chain.h"
#include "agent/fault/single_step.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {

AccessPath* g_fault_access;

// Initial-exec: no allocation on first use.
__thread ThreadState* t_state __attribute__((tls_model("initial-exec")));
__thread bool t_retired __attribute__((tls_model("initial-exec")));
__thread uint32_t t_inside __attribute__((tls_model("initial-exec")));

namespace {

// Recordings so far; what a thread knows is of the one whose number it has.
std::atomic<uint32_t> g_generation{1};
__thread uint32_t t_generation __attribute__((tls_model("initial-exec")));

__thread bool t_adopting __attribute__((tls_model("initial-exec")));
struct AdoptingScope {
  AdoptingScope() { t_adopting = true; }
  ~AdoptingScope() { t_adopting = false; }
};

}  // namespace

void renew() {
  uint32_t generation = g_generation.load(std::memory_order_relaxed);
  if (t_generation == generation) return;
  t_generation = generation;
  t_state = nullptr;
  t_retired = false;
  t_step.pc = 0;
}

// The thread whose access is to be recorded; nullptr for one that is let pass.
ThreadState* recorded_thread() {
  if (t_agent_depth != 0 || t_retired) return nullptr;
  ThreadState* thread = t_state != nullptr ? t_state : FaultHandler::adopt_this_thread();
  if (thread == nullptr) {
    if (g_gate.per_thread()) count(g_counters.foreign_opened);
    return nullptr;
  }
  return thread->choice.load(std::memory_order_relaxed) != ThreadChoice::kExcluded ? thread : nullptr;
}

void FaultHandler::unblock_signals() {
  uint64_t guarded = kGuardedSignals, before = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, reinterpret_cast<long>(&guarded), reinterpret_cast<long>(&before), 8);
  t_hidden_mask |= before & kGuardedSignals;
}

ThreadState* FaultHandler::this_thread() {
  renew();
  return t_state;
}

void FaultHandler::forget_threads() { g_generation.fetch_add(1, std::memory_order_relaxed); }

ThreadState* FaultHandler::adopt_this_thread(bool announced) {
  renew();
  if (t_state != nullptr) return t_state;
  if (t_adopting) return nullptr;  // an arm request has interrupted it
  AdoptingScope adopting;
  int32_t tid = current_tid();
  uint64_t java_thread = find_java_thread(*g_fault_access->layout, tid);
  if (java_thread == 0) return nullptr;
  // Compiler and service threads are JavaThreads too, of classes of their own. With keys
  // none of them is closed out unless an armed thread started it, or all were (late attach).
  uint64_t vtable = 0;
  if (!announced && (!g_gate.per_thread() || g_fault_access->late) &&
      (!safe_load(java_thread, &vtable) || vtable != g_fault_access->java_thread_vtable))
    return nullptr;
  ThreadState* thread = g_fault_access->threads->claim(tid);
  if (thread == nullptr) {
    count(g_counters.threads_full);
    return nullptr;
  }
  thread->inside.store(&t_inside, std::memory_order_release);
  thread->hints.java_thread = java_thread;
  // Its present TLAB may hold objects that are marked already.
  const VmLayout& layout = *g_fault_access->layout;
  safe_load(java_thread + layout.java_thread_tlab + layout.tlab_start, &thread->hints.tlab_start);
  if (!g_fault_access->filter_threads) thread->choice.store(ThreadChoice::kRecorded, std::memory_order_release);
  g_probed.attach(thread);
  t_retired = false;
  t_state = thread;
  return thread;
}

void FaultHandler::note_own_tlab() {
  renew();
  ThreadState* thread = t_state;
  if (thread == nullptr || thread->hints.java_thread == 0) return;
  // What it allocated so far in its TLAB was not seen; it is complete, so walk it.
  const VmLayout& layout = *g_fault_access->layout;
  uint64_t tlab = thread->hints.java_thread + layout.java_thread_tlab;
  uint64_t start = 0, top = 0;
  if (safe_load(tlab + layout.tlab_start, &start) && safe_load(tlab + layout.tlab_top, &top) && start != 0) {
    // In native state a collection may run meanwhile; what was marked then may be anything.
    thread->hints.tlab_start = start;
    uint32_t epoch = g_gc_id.load(std::memory_order_acquire);
    g_fault_access->resolver->walk(start, top, nullptr, nullptr);
    if (epoch == g_gc_id.load(std::memory_order_acquire)) {
      thread->hints.tlab_floor = top;
    } else {
      g_fault_access->resolver->forget(start, top);
    }
  }
}

void FaultHandler::retire_this_thread() {
  renew();
  t_retired = true;
  ThreadState* thread = t_state;
  if (thread == nullptr) return;
  g_probed.retire(thread);
  t_state = nullptr;
  thread->ended_ns.store(monotonic_ns(), std::memory_order_relaxed);
  thread->phase.store(ThreadPhase::kEnded, std::memory_order_release);
}

bool FaultHandler::arm_other_thread(int32_t tid) {
  return queue_signal(tid, SIGTRAP, reinterpret_cast<void*>(kArmRequest)) == 0;
}

}  // namespace classaccess
