// Small reads of VM metadata shared by the class and method tables.
// Context: signal handler and any thread; safe loads only.
#pragma once

#include <cstdint>
#include <string_view>

#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

// An address of VM metadata or C heap memory, by its look.
inline bool plausible_pointer(uint64_t p) { return (p & 7) == 0 && p >= 0x10000 && p < (1ull << 47); }

inline uint32_t hash_pointer(uint64_t p) { return static_cast<uint32_t>((p >> 3) * 0x9e3779b97f4a7c15ull >> 40); }

// A Symbol's text where it is, valid while whoever owns the Symbol is alive. Empty if it
// cannot be read.
inline std::string_view symbol_in_place(const VmLayout& layout, uint64_t symbol) {
  uint16_t length;
  char byte;
  if (!plausible_pointer(symbol) || !safe_load(symbol + layout.symbol_length, &length) || length == 0) return {};
  uint64_t body = symbol + layout.symbol_body;
  if (!safe_load(body, &byte) || !safe_load(body + length - 1, &byte)) return {};
  return {reinterpret_cast<const char*>(body), length};
}

// VM memory read in small pieces, a byte at a time.
class SafeBytes {
 public:
  explicit SafeBytes(uint64_t from) : at_(from) {}
  bool next(uint8_t* byte) {
    if (have_ == 0) {
      // Up to the end of an aligned word, so that no page is touched which has no byte of ours.
      uint64_t word;
      if (!safe_load(at_ & ~7ull, &word)) return false;
      have_ = 8 - static_cast<uint32_t>(at_ & 7);
      word_ = word >> (8 * (at_ & 7));
    }
    *byte = static_cast<uint8_t>(word_);
    word_ >>= 8;
    --have_;
    ++at_;
    return true;
  }
  uint64_t at() const { return at_; }

 private:
  uint64_t at_;
  uint64_t word_ = 0;
  uint32_t have_ = 0;
};

// One round of a bounded wait for another thread, which may have been preempted: about
// 100 ms in all. Longer only if it is this very thread, interrupted while it held the row.
constexpr int kWaitRounds = 1000;
inline void pause_briefly(int round) {
  for (int i = 0; i < 64; ++i) __builtin_ia32_pause();
  if (round > 2) raw_sleep(100000);
}

}  // namespace classaccess
