#include "agent/calls/call_clock.h"

#include <cpuid.h>
#include <time.h>

#include <atomic>

namespace classaccess {

bool g_call_tsc = false;

namespace {

// ns = base_ns + (ticks - base_ticks) * scale / 2^32, under a version: read by other threads.
std::atomic<uint64_t> g_scale{uint64_t{1} << 32}, g_base_ticks{0}, g_base_ns{0};

constexpr uint64_t kCalibrationNs = 5000000;

bool tsc_is_invariant() {
  unsigned a, b, c, d;
  if (__get_cpuid(0x80000000u, &a, &b, &c, &d) == 0 || a < 0x80000007u) return false;
  __get_cpuid(0x80000007u, &a, &b, &c, &d);
  return (d >> 8 & 1) != 0;
}

uint64_t rdtsc() {
  uint32_t low, high;
  asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
  return static_cast<uint64_t>(high) << 32 | low;
}

struct Pair {
  uint64_t ticks, ns;
};

// The two at the same moment, as near as a few tries bring them.
Pair read_both() {
  Pair best{};
  uint64_t width = UINT64_MAX;
  for (int i = 0; i < 20; ++i) {
    uint64_t before = rdtsc();
    uint64_t ns = call_ticks_slow();
    uint64_t after = rdtsc();
    if (after - before >= width) continue;
    width = after - before;
    best = {before + width / 2, ns};
  }
  return best;
}

}  // namespace

uint64_t call_ticks_slow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void start_call_clock() {
  static Pair first;
  if (!tsc_is_invariant()) return;
  if (first.ticks == 0) first = read_both();
  Pair now;
  do {
    now = read_both();
  } while (now.ns - first.ns < kCalibrationNs);
  auto scale = static_cast<unsigned __int128>(now.ns - first.ns) << 32;
  g_scale.store(static_cast<uint64_t>(scale / (now.ticks - first.ticks)), std::memory_order_relaxed);
  g_base_ticks.store(first.ticks, std::memory_order_relaxed);
  g_base_ns.store(first.ns, std::memory_order_relaxed);
  g_call_tsc = true;
}

uint64_t call_ns(uint64_t ticks) {
  auto scale = static_cast<unsigned __int128>(g_scale.load(std::memory_order_relaxed));
  return static_cast<uint64_t>(scale * ticks >> 32);
}

uint64_t call_ns_since_boot(uint64_t ticks) {
  uint64_t base = g_base_ticks.load(std::memory_order_relaxed), ns = g_base_ns.load(std::memory_order_relaxed);
  return ticks >= base ? ns + call_ns(ticks - base) : ns - call_ns(base - ticks);
}

}  // namespace classaccess
