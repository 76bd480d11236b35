// A table that only grows: rows are claimed by an atomic counter, filled by the
// claimer and published by a release store of the row's `ready` flag.
// Context: signal handler and any thread. Never frees, never moves a row, takes
// no lock. The memory is reserved once (see create) and touched as it fills.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/base/reserve.h"

namespace classaccess {

template <typename Row>
class AppendTable {
 public:
  // Reserves room for `capacity` rows; row 0 is never handed out, so an id of 0
  // means "none". Not in a signal handler. False if the kernel refuses.
  bool create(uint32_t capacity, Keep keep = Keep::kRecording) {
    rows_ = reserve_array<Row>(capacity, keep);
    if (rows_ == nullptr) return false;
    capacity_ = capacity;
    next_.store(1, std::memory_order_relaxed);
    return true;
  }

  // A fresh zeroed row's id, or 0 when the table is full (counted by the caller).
  uint32_t claim() {
    uint32_t id = next_.fetch_add(1, std::memory_order_relaxed);
    if (id < capacity_) return id;
    next_.store(capacity_, std::memory_order_relaxed);
    return 0;
  }

  Row& row(uint32_t id) { return rows_[id]; }
  const Row& row(uint32_t id) const { return rows_[id]; }

  // Ids handed out so far are 1 .. end()-1; the newest may still be unpublished.
  uint32_t end() const {
    uint32_t n = next_.load(std::memory_order_acquire);
    return n < capacity_ ? n : capacity_;
  }

 private:
  Row* rows_ = nullptr;
  uint32_t capacity_ = 0;
  std::atomic<uint32_t> next_{1};
};

}  // namespace classaccess
