#include "agent/calls/java/virtual_calls.h"

#include "agent/base/reserve.h"
#include "agent/calls/call_core.h"

namespace classaccess {
namespace {

VirtualThreads* g_virtual_threads = nullptr;
std::atomic<CallThread*>* g_call_thread_of = nullptr;  // by VirtualThreads' id
std::atomic<uint32_t> g_in_use{0};
bool g_watched = false;

__thread CallThread* t_virtual __attribute__((tls_model("initial-exec")));

// Null: the carrier's own.
void use(CallThread* virtual_thread) {
  const CallThread* before = t_call_thread;
  const uint32_t context = before != nullptr ? before->context : 0;
  t_virtual = virtual_thread;
  set_call_thread(virtual_thread);
  CallThread* now = call_thread();
  if (now != nullptr && now->context != context) context_changed(now);
}

// The virtual thread leaves the carrier.
void put_aside() {
  CallThread* thread = t_virtual;
  if (thread == nullptr) return;
  use(nullptr);
  if (thread->depth != 0) return;
  g_call_thread_of[thread->virtual_id].store(nullptr, std::memory_order_relaxed);
  g_in_use.fetch_sub(1, std::memory_order_relaxed);
  end_call_thread(thread);
}

}  // namespace

bool start_virtual_calls(VirtualThreads* threads, bool watched) {
  g_virtual_threads = nullptr;
  g_watched = watched;
  g_in_use.store(0, std::memory_order_relaxed);
  if (threads == nullptr) return true;
  g_call_thread_of = reserve_array<std::atomic<CallThread*>>(VirtualThreads::kCapacity);
  g_virtual_threads = g_call_thread_of != nullptr ? threads : nullptr;
  return g_virtual_threads != nullptr;
}

void calls_mounted(ThreadState* carrier, bool now) {
  if (g_virtual_threads == nullptr || !g_calls_on.load(std::memory_order_relaxed)) return;
  put_aside();
  if (!now || g_in_use.load(std::memory_order_relaxed) == 0) return;
  const uint32_t id = g_virtual_threads->current(carrier);
  if (id == 0) return;
  if (CallThread* thread = g_call_thread_of[id].load(std::memory_order_acquire)) use(thread);
}

bool choose_call_thread(ThreadState* carrier, bool entering) {
  if (g_virtual_threads == nullptr || (t_virtual != nullptr && g_watched)) return true;
  const uint32_t id = g_virtual_threads->current(carrier);
  if (t_virtual != nullptr && t_virtual->virtual_id == id) return true;
  put_aside();
  if (id == 0) return carrier->choice.load(std::memory_order_relaxed) != ThreadChoice::kVirtualOnly;
  const VirtualThread& row = g_virtual_threads->row(id);
  if (!row.recorded) return false;
  CallThread* thread = g_call_thread_of[id].load(std::memory_order_acquire);
  if (thread == nullptr && entering) {
    thread = claim_call_thread(0, id);
    if (thread == nullptr) return false;
    thread->thread_id.store(row.thread_id, std::memory_order_release);
    g_call_thread_of[id].store(thread, std::memory_order_release);
    g_in_use.fetch_add(1, std::memory_order_relaxed);
  }
  if (thread == nullptr) return false;
  use(thread);
  return true;
}

}  // namespace classaccess
