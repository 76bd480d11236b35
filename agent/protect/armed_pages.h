// Which pages of the heap are committed and closed: one bit a 4 KB page of the
// heap's reserved range. Set and cleared by the mmap interposer, read by the trap
// handler. A fault on a page whose bit is clear is not ours (an uncommitted page
// reports the key as well).
// Context: any thread and signal handler; relaxed atomics, no lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace classaccess {

class ArmedPages {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  // The reserved range; called once when the heap is recognised. False: no memory.
  bool create(uint64_t low, uint64_t high);

  // heap=LO-HI: pages outside [low, high) stay open. Before the first set().
  void limit(uint64_t low, uint64_t high);
  void unlimit() { limit_low_ = 0, limit_high_ = ~0ull; }
  uint64_t limit_low() const { return limit_low_; }
  uint64_t limit_high() const { return limit_high_; }

  void set(uint64_t low, uint64_t high) { change(low, high, true); }
  void clear(uint64_t low, uint64_t high) { change(low, high, false); }

  bool in_range(uint64_t address) const { return address - low_ < high_ - low_; }
  bool armed(uint64_t address) const;
  // True if every byte of [address, address + bytes) is armed.
  bool armed(uint64_t address, uint64_t bytes) const;
  // Bytes from `address` on (at least 0) that are armed without a gap; at most `most`.
  uint64_t armed_ahead(uint64_t address, uint64_t most) const;
  // The same towards lower addresses, counting the byte at `address` itself.
  uint64_t armed_behind(uint64_t address, uint64_t most) const;

  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }

 private:
  void change(uint64_t low, uint64_t high, bool armed);

  uint64_t low_ = 0, high_ = 0;
  uint64_t limit_low_ = 0, limit_high_ = ~0ull;
  std::atomic<uint64_t>* bits_ = nullptr;
};

extern ArmedPages g_armed;
extern ArmedPages g_committed;  // the same for committed pages, closed or not

}  // namespace classaccess
