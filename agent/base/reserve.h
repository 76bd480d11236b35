// Address space for tables that are used as they fill: zeroed, its memory taken page by page
// at the first touch.
//
// When a recording is over and no thread uses its tables any more, their memory is given back
// and their addresses are used again by the next one's tables of the same sizes: a late reader
// meets zeroes, never an unmapped page.
// Context: start-up; not in a signal handler. recycle: after a recording.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace classaccess {

enum class Keep : bool { kRecording, kProcess };

// Null if the kernel refuses (ulimit -v).
void* reserve_memory(size_t bytes, int protection = PROT_READ | PROT_WRITE, Keep keep = Keep::kRecording);

// The same for `count` of T, for which zero bytes must be a valid value.
template <typename T>
T* reserve_array(size_t count, Keep keep = Keep::kRecording) {
  return static_cast<T*>(reserve_memory(count * sizeof(T), PROT_READ | PROT_WRITE, keep));
}

// Gives back what was reserved for the recording.
void recycle_reservations();

// [low, high) without access, if nothing lies there yet.
inline bool reserve_range(uint64_t low, uint64_t high) {
  void* at = reinterpret_cast<void*>(low);
  void* got = mmap(at, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return false;
  if (got == at) return true;
  munmap(got, high - low);  // kernels before 4.17 ignore NOREPLACE
  return false;
}

}  // namespace classaccess
