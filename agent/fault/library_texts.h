// Where the code of the loaded libraries lies that may be probed: not our own, the dynamic
// linker's or the kernel's.
// Context: publish: one normal thread at a time; contains: any handler, no lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace classaccess {

class LibraryTexts {
 public:
  static constexpr int kMax = 512;
  struct Range {
    uint64_t low = 0, high = 0;
  };

  // Replaces what is known; `count` at most kMax, the rest is left out.
  void publish(const Range* ranges, int count);
  bool contains(uint64_t pc) const;
  // f(low, high) for each. Not while another thread publishes.
  template <typename F>
  void for_each(F&& f) const {
    const List& list = lists_[current_.load(std::memory_order_acquire)];
    for (int i = 0; i < list.count.load(std::memory_order_relaxed); ++i) f(list.ranges[i].low, list.ranges[i].high);
  }

 private:
  struct List {
    std::atomic<int> count{0};
    Range ranges[kMax];
  };
  List lists_[2];
  std::atomic<int> current_{0};
};

extern LibraryTexts g_library_texts;

}  // namespace classaccess
