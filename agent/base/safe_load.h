// Loads that may fault: they return false instead of crashing.
//
// The fault handler asks safe_load_recover first for every SIGSEGV and SIGBUS;
// it works only while that handler is installed. Reads VM metadata, code, stacks
// and the twin view (the plain heap view is closed).
// Context: signal handler and any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace classaccess {

extern "C" {
// rax = bytes NOT copied; 0 is success. Registers only, no stack use.
size_t classaccess_safe_copy(void* to, const void* from, size_t bytes);
// 1 and *to set, or 0.
int classaccess_safe_load64(const void* from, uint64_t* to);
int classaccess_safe_load32(const void* from, uint32_t* to);
}

template <typename T>
inline bool safe_load(uint64_t from, T* to) {
  static_assert(sizeof(T) <= 8);
  if constexpr (sizeof(T) == 8) {
    return classaccess_safe_load64(reinterpret_cast<const void*>(from), reinterpret_cast<uint64_t*>(to)) != 0;
  } else if constexpr (sizeof(T) == 4) {
    return classaccess_safe_load32(reinterpret_cast<const void*>(from), reinterpret_cast<uint32_t*>(to)) != 0;
  } else {
    return classaccess_safe_copy(to, reinterpret_cast<const void*>(from), sizeof(T)) == 0;
  }
}

// Either side may fault.
inline bool safe_copy(void* to, uint64_t from, size_t bytes) {
  return classaccess_safe_copy(to, reinterpret_cast<const void*>(from), bytes) == 0;
}

// Copies up to the first byte that cannot be read; returns how many bytes that were.
inline size_t safe_copy_prefix(void* to, uint64_t from, size_t most) {
  return most - classaccess_safe_copy(to, reinterpret_cast<const void*>(from), most);
}

// Whether the 8 bytes that hold `address` can be read, without a fault: for what most likely
// cannot, and where a second signal frame may not fit on the stack. The kernel copies the set
// before it looks at `how` (rt_sigprocmask).
bool is_readable(uint64_t address);

// If `pc` is inside one of the loads, returns where to resume; else 0.
uint64_t safe_load_recover(uint64_t pc);

}  // namespace classaccess
