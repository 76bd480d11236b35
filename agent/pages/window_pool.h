// The windows of one recording: one that threads may share, and those of single threads.
//
// Context: create: start; the rest: under the lock of OpenPages, signal handlers.
#pragma once

#include <cstdint>

#include "agent/pages/page_model.h"

namespace classaccess {

struct PageWindow {
  static constexpr uint32_t kNoKey = UINT32_MAX;

  PageModel model;
  uint32_t key = kNoKey;  // of page_keys.h; none: its pages are closed, each access of them traps
};

class WindowPool {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kCommon = 0;
  static constexpr uint32_t kMost = 1024;

  // `window` pages in each, up to kMost windows. False: no memory, or no such window.
  bool create(uint32_t window);

  PageWindow& operator[](uint32_t index) { return windows_[index]; }
  // Windows that have ever been given out have lower numbers.
  uint32_t end() const { return begun_; }

  // An empty window, kNone if all are taken.
  uint32_t claim();
  void give_back(uint32_t index);

 private:
  PageWindow windows_[kMost];
  uint32_t free_[kMost];
  uint32_t free_count_ = 0, begun_ = 0, count_ = 0;
};

}  // namespace classaccess
