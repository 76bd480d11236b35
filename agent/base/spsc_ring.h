// A ring of access records between one recording thread and the writer.
// Context: push side is the owning thread's signal handler; drain side is the
// writer thread. No lock. The memory belongs to the ThreadState pool.
#pragma once

#include <atomic>
#include <cstdint>

#include "classaccess/record.h"

namespace classaccess {

class SpscRing {
 public:
  static constexpr uint32_t kCapacity = 4096;

  // False when full: the caller waits for the writer, it never drops.
  bool push(const AccessRecord& record) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_cache_ == kCapacity) {
      tail_cache_ = tail_.load(std::memory_order_acquire);
      if (head - tail_cache_ == kCapacity) return false;
    }
    records_[head % kCapacity] = record;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Calls sink(record) for each record present at the call, in order; returns how many.
  template <typename Sink>
  uint64_t drain(Sink&& sink) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    uint64_t head = head_.load(std::memory_order_acquire);
    for (uint64_t i = tail; i != head; ++i) sink(static_cast<const AccessRecord&>(records_[i % kCapacity]));
    tail_.store(head, std::memory_order_release);
    return head - tail;
  }

  uint64_t pending() const { return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_acquire); }

 private:
  alignas(64) std::atomic<uint64_t> head_{0};
  uint64_t tail_cache_ = 0;  // owner's last sight of tail_
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) AccessRecord records_[kCapacity];
};

}  // namespace classaccess
