// Waking the writer thread: a futex word that a signal handler may ring.
// Context: wake_writer, raw_sleep: any thread and signal handler; wakes_seen,
// sleep_until_wake: the writer.
#pragma once

#include <cstdint>

namespace classaccess {

void wake_writer();

// Read before looking for work; a wake after that makes the sleep end at once.
uint32_t wakes_seen();
void sleep_until_wake(uint32_t seen, uint32_t milliseconds);

// Sleeps without the C library's cancellation points or locks; for a thread whose
// ring is full.
void raw_sleep(uint64_t nanoseconds);

}  // namespace classaccess
