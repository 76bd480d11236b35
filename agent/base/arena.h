// Bump memory for names that are copied once and kept for the process's life.
// Context: signal handler and any thread. No lock, no free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include "agent/base/reserve.h"

namespace classaccess {

class Arena {
 public:
  // Reserves address space; memory is used as it fills. Not in a signal handler.
  bool create(size_t bytes, Keep keep = Keep::kRecording) {
    base_ = reserve_array<char>(bytes, keep);
    if (base_ == nullptr) return false;
    size_ = bytes;
    return true;
  }

  // 8-byte aligned, zeroed memory, or nullptr when the arena is full.
  void* take(size_t bytes) {
    size_t rounded = (bytes + 7) & ~static_cast<size_t>(7);
    size_t at = used_.fetch_add(rounded, std::memory_order_relaxed);
    return at + rounded <= size_ ? base_ + at : nullptr;
  }

  // A NUL-terminated copy of text[0, length), or "" when the arena is full.
  const char* copy(const char* text, size_t length) {
    char* to = static_cast<char*>(take(length + 1));
    if (to == nullptr) return "";
    std::memcpy(to, text, length);
    return to;
  }

 private:
  char* base_ = nullptr;
  size_t size_ = 0;
  std::atomic<size_t> used_{0};
};

}  // namespace classaccess
