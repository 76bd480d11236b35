#include "agent/fault/settle.h"

#include <errno.h>
#include <signal.h>

#include "agent/base/queue_signal.h"

namespace classaccess {
namespace {

std::atomic<Settled> g_slots[kSettleSlots];

}  // namespace

bool ask_to_settle(uint32_t slot, int32_t tid) {
  g_slots[slot].store(Settled::kAsked, std::memory_order_release);
  const long error = queue_signal(tid, SIGTRAP, &g_slots[slot]);
  // Not for want of room in the queue.
  if (error != 0) g_slots[slot].store(Settled::kNotYet, std::memory_order_release);
  return error == 0 || error == -EAGAIN;
}

Settled settled(uint32_t slot) { return g_slots[slot].load(std::memory_order_acquire); }

std::atomic<Settled>* settle_slot(const void* value) {
  auto* slot = static_cast<std::atomic<Settled>*>(const_cast<void*>(value));
  return slot >= g_slots && slot < g_slots + kSettleSlots ? slot : nullptr;
}

}  // namespace classaccess
