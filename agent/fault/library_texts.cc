#include "agent/fault/library_texts.h"

namespace classaccess {

LibraryTexts g_library_texts;

void LibraryTexts::publish(const Range* ranges, int count) {
  int next = 1 - current_.load(std::memory_order_relaxed);
  List& list = lists_[next];
  if (count > kMax) count = kMax;
  for (int i = 0; i < count; ++i) list.ranges[i] = ranges[i];
  list.count.store(count, std::memory_order_relaxed);
  current_.store(next, std::memory_order_release);
}

bool LibraryTexts::contains(uint64_t pc) const {
  const List& list = lists_[current_.load(std::memory_order_acquire)];
  int count = list.count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (pc - list.ranges[i].low < list.ranges[i].high - list.ranges[i].low) return true;
  }
  return false;
}

}  // namespace classaccess
