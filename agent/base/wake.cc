#include "agent/base/wake.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

std::atomic<uint32_t> g_wakes{0};
std::atomic<uint32_t> g_asleep{0};
static_assert(sizeof(g_wakes) == 4 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

void wake_writer() {
  g_wakes.fetch_add(1, std::memory_order_seq_cst);
  if (g_asleep.load(std::memory_order_seq_cst) == 0) return;
  raw_syscall(SYS_futex, reinterpret_cast<long>(&g_wakes), FUTEX_WAKE_PRIVATE, 1);
}

uint32_t wakes_seen() { return g_wakes.load(std::memory_order_seq_cst); }

void sleep_until_wake(uint32_t seen, uint32_t milliseconds) {
  timespec timeout = {milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1000000};
  g_asleep.store(1, std::memory_order_seq_cst);
  raw_syscall(SYS_futex, reinterpret_cast<long>(&g_wakes), FUTEX_WAIT_PRIVATE, seen, reinterpret_cast<long>(&timeout));
  g_asleep.store(0, std::memory_order_seq_cst);
}

void raw_sleep(uint64_t nanoseconds) {
  timespec time{static_cast<time_t>(nanoseconds / 1000000000u), static_cast<long>(nanoseconds % 1000000000u)};
  raw_syscall(SYS_nanosleep, reinterpret_cast<long>(&time));
}

}  // namespace classaccess
