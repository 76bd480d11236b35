#include "agent/fault/settle.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

std::atomic<Settled> g_slots[kSettleSlots];

}  // namespace

bool ask_to_settle(uint32_t slot, int32_t tid) {
  g_slots[slot].store(Settled::kAsked, std::memory_order_release);
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  info.si_signo = SIGTRAP;
  info.si_code = SI_QUEUE;
  info.si_value.sival_ptr = &g_slots[slot];
  const long pid = raw_syscall(SYS_getpid);
  const long error = raw_syscall(SYS_rt_tgsigqueueinfo, pid, tid, SIGTRAP, reinterpret_cast<long>(&info));
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
