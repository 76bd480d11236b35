// The clock of call timing: the time-stamp counter if it is invariant, else CLOCK_MONOTONIC.
// Context: call_ticks: any; the rest: any thread after start_call_clock.
#pragma once

#include <cstdint>

namespace classaccess {

// Whether ticks are TSC ticks. Set by start_call_clock, constant afterwards.
extern bool g_call_tsc;
// clock_gettime(CLOCK_MONOTONIC) of the kernel's vdso in ns: no vector register.
uint64_t call_ticks_slow();

inline uint64_t call_ticks() {
  if (!g_call_tsc) return call_ticks_slow();
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Once a process. Takes some milliseconds; the rate is refined when it is called again.
void start_call_clock();

// A duration in ns, and a moment in ns of CLOCK_MONOTONIC.
uint64_t call_ns(uint64_t ticks);
uint64_t call_ns_since_boot(uint64_t ticks);

}  // namespace classaccess
