#include "agent/protect/armed_pages.h"

#include "agent/base/reserve.h"

namespace classaccess {

ArmedPages g_armed;
ArmedPages g_committed;

bool ArmedPages::create(uint64_t low, uint64_t high) {
  uint64_t words = ((high - low) / kPageBytes + 63) / 64 + 1;
  bits_ = reserve_array<std::atomic<uint64_t>>(words, Keep::kProcess);
  if (bits_ == nullptr) return false;
  low_ = low;
  high_ = high;
  return true;
}

void ArmedPages::limit(uint64_t low, uint64_t high) {
  limit_low_ = low & ~(kPageBytes - 1);
  limit_high_ = (high + kPageBytes - 1) & ~(kPageBytes - 1);
}

void ArmedPages::change(uint64_t low, uint64_t high, bool armed) {
  if (low < low_) low = low_;
  if (high > high_) high = high_;
  if (armed) {
    if (low < limit_low_) low = limit_low_;
    if (high > limit_high_) high = limit_high_;
  }
  if (bits_ == nullptr || low >= high) return;
  uint64_t first = (low - low_) / kPageBytes;
  uint64_t end = (high - low_ + kPageBytes - 1) / kPageBytes;
  for (uint64_t page = first; page < end;) {
    uint64_t bit = page % 64;
    uint64_t run = 64 - bit < end - page ? 64 - bit : end - page;
    uint64_t mask = (run == 64 ? ~0ull : ((1ull << run) - 1)) << bit;
    if (armed) {
      bits_[page / 64].fetch_or(mask, std::memory_order_relaxed);
    } else {
      bits_[page / 64].fetch_and(~mask, std::memory_order_relaxed);
    }
    page += run;
  }
}

bool ArmedPages::armed(uint64_t address) const {
  if (!in_range(address)) return false;
  uint64_t page = (address - low_) / kPageBytes;
  return (bits_[page / 64].load(std::memory_order_relaxed) >> (page % 64) & 1) != 0;
}

bool ArmedPages::armed(uint64_t address, uint64_t bytes) const {
  if (bytes == 0) return armed(address);
  if (!armed(address)) return false;
  if ((address ^ (address + bytes - 1)) < kPageBytes) return true;
  return armed_ahead(address, bytes) == bytes;
}

uint64_t ArmedPages::armed_ahead(uint64_t address, uint64_t most) const {
  constexpr uint64_t kWordBytes = 64 * kPageBytes;
  uint64_t at = address;
  while (at - address < most && armed(at)) {
    at = (at & ~(kPageBytes - 1)) + kPageBytes;
    // A word at a time where it is all set.
    while ((at - low_) % kWordBytes == 0 && in_range(at) && at - address < most &&
           bits_[(at - low_) / kWordBytes].load(std::memory_order_relaxed) == ~0ull) {
      at += kWordBytes;
    }
  }
  return at - address < most ? at - address : most;
}

uint64_t ArmedPages::armed_behind(uint64_t address, uint64_t most) const {
  uint64_t bytes = 0;
  for (uint64_t at = address; bytes < most && armed(at);) {
    uint64_t in_page = (at & (kPageBytes - 1)) + 1;
    bytes += in_page;
    at -= in_page;
  }
  return bytes < most ? bytes : most;
}

}  // namespace classaccess
