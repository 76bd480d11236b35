#include "agent/heap/object_starts.h"

#include "agent/base/reserve.h"

namespace classaccess {
namespace {

// Bits [from, to] of a word.
uint64_t bits_between(uint64_t from, uint64_t to) { return (~0ull << from) & (~0ull >> (63 - to)); }

}  // namespace

bool ObjectStarts::create(uint64_t low, uint64_t high) {
  low_ = low & ~511ull;
  high_ = (high + 511) & ~511ull;
  uint64_t words = (high_ - low_) / 512;
  for (auto*& level : level_) {
    level = reserve_array<std::atomic<uint64_t>>(words + 1);
    if (level == nullptr) return false;
    words = words / 64 + 1;
  }
  return true;
}

void ObjectStarts::set(uint64_t object) {
  if (object - low_ >= high_ - low_) return;
  uint64_t index = (object - low_) >> 3;
  for (auto* level : level_) {
    uint64_t bit = 1ull << (index % 64);
    index /= 64;
    // Upper levels are mostly set already: look before writing a shared line.
    if ((level[index].load(std::memory_order_relaxed) & bit) == 0) {
      level[index].fetch_or(bit, std::memory_order_relaxed);
    }
  }
}

void ObjectStarts::clear(uint64_t object) {
  if (object - low_ >= high_ - low_) return;
  level_[0][word_of(object)].fetch_and(~(1ull << bit_of(object)), std::memory_order_relaxed);
}

void ObjectStarts::clear_range(uint64_t low, uint64_t high) {
  if (low < low_) low = low_;
  if (high > high_) high = high_;
  if (low >= high) return;
  uint64_t first = word_of(low);
  uint64_t last = word_of(high - 1);
  auto* words = level_[0];
  if (first == last) {
    words[first].fetch_and(~bits_between(bit_of(low), bit_of(high - 1)), std::memory_order_relaxed);
    return;
  }
  words[first].fetch_and(~bits_between(bit_of(low), 63), std::memory_order_relaxed);
  words[last].fetch_and(~bits_between(0, bit_of(high - 1)), std::memory_order_relaxed);
  // Only words that the summary marks can have bits.
  for (uint64_t word = first + 1; word < last;) {
    if (word % 64 == 0 && level_[1][word / 64].load(std::memory_order_relaxed) == 0) {
      word += 64;
      continue;
    }
    if (words[word].load(std::memory_order_relaxed) != 0) words[word].store(0, std::memory_order_relaxed);
    ++word;
  }
  for (uint64_t s = first / 64 + 1; s < last / 64; ++s) level_[1][s].store(0, std::memory_order_relaxed);
}

uint64_t ObjectStarts::at_or_below(uint64_t address, uint64_t floor) const {
  if (address - low_ >= high_ - low_) return 0;
  // Up until a level has a marked bit at or below, then down again to the highest start
  // under it; a summary bit may be stale, so go on below it then.
  uint64_t index = (address - low_) >> 3;
  int depth = 0;
  for (;;) {
    uint64_t word = index / 64;
    uint64_t bits = level_[depth][word].load(std::memory_order_relaxed) & bits_between(0, index % 64);
    if (bits != 0) {
      index = word * 64 + 63 - static_cast<uint64_t>(__builtin_clzll(bits));
      if (depth == 0) break;
      --depth;
      index = index * 64 + 63;  // the last bit of the word it stands for
      continue;
    }
    if (word == 0) return 0;
    if (depth + 1 < kLevels) {
      ++depth;
      index = word - 1;
    } else {
      index = word * 64 - 1;
    }
  }
  uint64_t object = low_ + index * 8;
  return object >= floor ? object : 0;
}

}  // namespace classaccess
