// CLOCK_MONOTONIC in nanoseconds. Context: any (clock_gettime is async-signal-safe).
#pragma once

#include <time.h>

#include <cstdint>

namespace classaccess {

inline uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace classaccess
