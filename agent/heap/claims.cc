#include "agent/heap/claims.h"

#include <sys/mman.h>

#include "agent/base/reserve.h"

namespace classaccess {

Claims g_claims;
VerifyCounters g_verify_counters;

bool Claims::create(uint64_t heap_low, uint64_t heap_high) {
  claims_ = reserve_array<Claim>((heap_high - heap_low) / 8);
  if (claims_ == nullptr) return false;
  low_ = heap_low;
  high_ = heap_high;
  return true;
}

void Claims::claim(uint64_t address, uint64_t object, uint32_t class_id) {
  if (claims_ == nullptr || address - low_ >= high_ - low_) return;
  Claim& claim = *at(address);
  uint64_t said = static_cast<uint64_t>(class_id) << 32 | ((object - low_) / 8 + 1);
  uint64_t before = 0;
  if (!claim.said.compare_exchange_strong(before, said, std::memory_order_relaxed) && before != said) {
    claim.conflicts.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  claim.count.fetch_add(1, std::memory_order_relaxed);
}

void Claims::forget_all() { madvise(claims_, (high_ - low_) / 8 * sizeof(Claim), MADV_DONTNEED); }

}  // namespace classaccess
