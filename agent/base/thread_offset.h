// Where a thread keeps its own: the FS base, and thread-local variables as offsets from it.
// Source: x86-64 psABI, TLS variant II: the word at FS:0 holds the FS base.
// Context: any.
#pragma once

#include <cstdint>

namespace classaccess {

inline uint64_t fs_base() {
  uint64_t base;
  asm("mov %%fs:0, %0" : "=r"(base));
  return base;
}

// Of a variable of the initial-exec model: the same on every thread.
inline int32_t thread_offset(const void* variable) {
  return static_cast<int32_t>(reinterpret_cast<uint64_t>(variable) - fs_base());
}

}  // namespace classaccess
