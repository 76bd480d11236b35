// What the resolver said, kept until a second method checks it. Only in the verifying build of the agent
// (target classaccess_verify); see agent/jvmti/heap_verify.h.
//
// For each 8 bytes of the heap: the object the resolver found there since the last pause, its class, how often. No
// object of Serial, Parallel or G1 moves between two pauses and no memory is used twice, so two different answers are
// a mistake already.
// Context: claim: signal handler, or whoever drains probes. The rest: the VM thread in a pause.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/heap/resolver.h"

namespace classaccess {

class Claims {
 public:
  struct Claim {
    std::atomic<uint64_t> said;  // class id << 32 | (object - heap_low) / 8 + 1; 0: nothing
    std::atomic<uint32_t> count;
    std::atomic<uint32_t> conflicts;  // answers that differ from the first
  };

  // False without address space. 16 bytes for each 8 of the heap, touched as needed.
  bool create(uint64_t heap_low, uint64_t heap_high);

  void claim(uint64_t address, const Resolution& resolution) {
    if (resolution.kind == Resolution::kObject) claim(address, resolution.object, resolution.class_info->id);
  }
  void claim(uint64_t address, uint64_t object, uint32_t class_id);

  Claim* at(uint64_t address) { return claims_ + ((address - low_) >> 3); }
  uint64_t object_of(const Claim& claim) const {
    return low_ + 8 * ((claim.said.load(std::memory_order_relaxed) & 0xffffffffu) - 1);
  }
  static uint32_t class_of(const Claim& claim) {
    return static_cast<uint32_t>(claim.said.load(std::memory_order_relaxed) >> 32);
  }
  bool created() const { return claims_ != nullptr; }
  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }
  void forget_all();

 private:
  Claim* claims_ = nullptr;
  uint64_t low_ = 0, high_ = 0;
};

extern Claims g_claims;

// Rows of `diagnostic`, in accesses.
struct VerifyCounters {
  uint64_t verified = 0, disagreements = 0, unverified = 0;
};
extern VerifyCounters g_verify_counters;

}  // namespace classaccess
