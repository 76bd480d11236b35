// Where objects start: one bit for each 8 bytes of the heap's reserved range, and two
// levels of summary bits (a bit for each word of the level below that has, or has had,
// a bit), so that the nearest start below an address is found quickly in a large array
// and in an almost empty heap too.
//
// Set by the header stores of recorded threads and by walks over what a collection
// left behind; cleared where memory is given back or reused. A set bit is a claim to
// be checked (the Klass word must still be valid), never a proof.
// Context: set, clear, lookups: signal handler and any thread, relaxed atomics.
// clear_range of more than an object: only at a safepoint or before recording.
#pragma once

#include <atomic>
#include <cstdint>

namespace classaccess {

class ObjectStarts {
 public:
  bool create(uint64_t low, uint64_t high);

  void set(uint64_t object);
  void clear(uint64_t object);
  bool is_set(uint64_t object) const {
    if (object - low_ >= high_ - low_ || (object & 7) != 0) return false;
    return (level_[0][word_of(object)].load(std::memory_order_relaxed) >> bit_of(object) & 1) != 0;
  }
  void clear_range(uint64_t low, uint64_t high);

  // The highest start <= address and >= floor, or 0.
  uint64_t at_or_below(uint64_t address, uint64_t floor) const;

  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }

 private:
  uint64_t word_of(uint64_t address) const { return (address - low_) >> 9; }
  static uint64_t bit_of(uint64_t address) { return (address >> 3) & 63; }

  uint64_t low_ = 0, high_ = 0;
  static constexpr int kLevels = 3;
  std::atomic<uint64_t>* level_[kLevels] = {};  // a word: 512 B, 32 KB, 2 MB of heap
};

}  // namespace classaccess
