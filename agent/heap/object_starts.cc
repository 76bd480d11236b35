#include "agent/heap/object_starts.h"

#include <sys/mman.h>

namespace classaccess {
namespace {

std::atomic<uint64_t>* reserve_words(uint64_t count) {
  void* memory =
      mmap(nullptr, count * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::atomic<uint64_t>*>(memory);
}

// Bits [from, to] of a word.
uint64_t bits_between(uint64_t from, uint64_t to) { return (~0ull << from) & (~0ull >> (63 - to)); }

}  // namespace

bool ObjectStarts::create(uint64_t low, uint64_t high) {
  low_ = low & ~511ull;
  high_ = (high + 511) & ~511ull;
  uint64_t words = (high_ - low_) / 512;
  words_ = reserve_words(words + 1);
  summary_ = reserve_words(words / 64 + 2);
  return words_ != nullptr && summary_ != nullptr;
}

void ObjectStarts::set(uint64_t object) {
  if (object - low_ >= high_ - low_) return;
  uint64_t word = word_of(object);
  words_[word].fetch_or(1ull << bit_of(object), std::memory_order_relaxed);
  std::atomic<uint64_t>& sum = summary_[word / 64];
  uint64_t bit = 1ull << (word % 64);
  if ((sum.load(std::memory_order_relaxed) & bit) == 0) sum.fetch_or(bit, std::memory_order_relaxed);
}

void ObjectStarts::clear(uint64_t object) {
  if (object - low_ >= high_ - low_) return;
  words_[word_of(object)].fetch_and(~(1ull << bit_of(object)), std::memory_order_relaxed);
}

bool ObjectStarts::is_set(uint64_t object) const {
  if (object - low_ >= high_ - low_ || (object & 7) != 0) return false;
  return (words_[word_of(object)].load(std::memory_order_relaxed) >> bit_of(object) & 1) != 0;
}

void ObjectStarts::clear_range(uint64_t low, uint64_t high) {
  if (low < low_) low = low_;
  if (high > high_) high = high_;
  if (low >= high) return;
  uint64_t first = word_of(low);
  uint64_t last = word_of(high - 1);
  if (first == last) {
    words_[first].fetch_and(~bits_between(bit_of(low), bit_of(high - 1)), std::memory_order_relaxed);
    return;
  }
  words_[first].fetch_and(~bits_between(bit_of(low), 63), std::memory_order_relaxed);
  words_[last].fetch_and(~bits_between(0, bit_of(high - 1)), std::memory_order_relaxed);
  // Only words that the summary marks can have bits.
  for (uint64_t word = first + 1; word < last;) {
    if (word % 64 == 0 && summary_[word / 64].load(std::memory_order_relaxed) == 0) {
      word += 64;
      continue;
    }
    if (words_[word].load(std::memory_order_relaxed) != 0) words_[word].store(0, std::memory_order_relaxed);
    ++word;
  }
  for (uint64_t s = first / 64 + 1; s < last / 64; ++s) summary_[s].store(0, std::memory_order_relaxed);
}

uint64_t ObjectStarts::at_or_below(uint64_t address, uint64_t floor) const {
  if (address - low_ >= high_ - low_) return 0;
  if (floor < low_) floor = low_;
  uint64_t word = word_of(address);
  uint64_t bits = words_[word].load(std::memory_order_relaxed) & bits_between(0, bit_of(address));
  while (bits == 0) {
    // The next marked word below.
    if (word == 0) return 0;
    --word;
    uint64_t s = word / 64;
    uint64_t marked = summary_[s].load(std::memory_order_relaxed) & bits_between(0, word % 64);
    while (marked == 0) {
      if (s == 0 || low_ + s * 64 * 512 <= floor) return 0;
      marked = summary_[--s].load(std::memory_order_relaxed);
    }
    word = s * 64 + 63 - static_cast<uint64_t>(__builtin_clzll(marked));
    bits = words_[word].load(std::memory_order_relaxed);
  }
  uint64_t object = low_ + word * 512 + (63 - static_cast<uint64_t>(__builtin_clzll(bits))) * 8;
  return object >= floor ? object : 0;
}

}  // namespace classaccess
