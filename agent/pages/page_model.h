// The page access model by itself: which pages are open, what a touch counts.
//
// The window holds up to N open pages. Touching one of them changes nothing. Touching any
// other counts once, with the page counted before it; that page opens and, if the window was
// full, the page that was opened first closes (touches of open pages are not seen, so there
// is no better order than that of opening).
// Context: whoever holds the lock of OpenPages; no system call, no clock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace classaccess {

constexpr uint32_t kNoPage = UINT32_MAX;

// Page size and window for which `mappings` kernel mappings suffice, as close as can be to what is asked for: an
// open page splits a mapping in three. Larger pages before a smaller window.
struct PageChoice {
  uint64_t page_bytes;
  uint32_t window;
};
PageChoice choose_pages(uint64_t page_bytes, uint32_t window, uint64_t heap_bytes, uint64_t mappings);

class PageModel {
 public:
  static constexpr uint32_t kMaxWindow = 16384;

  // What a window of so many pages needs; 0 if it is none: 1 <= window <= kMaxWindow.
  static size_t bytes(uint32_t window);
  // Begins empty, in `memory`: bytes(window) zero bytes.
  void place(uint32_t window, void* memory);

  struct Touch {
    bool counted = false;
    uint32_t from = kNoPage;    // the page counted before, if there was one
    uint32_t closed = kNoPage;  // the page that has left the window
  };
  Touch touch(uint32_t page);

  bool is_open(uint32_t page) const { return find(page) != kNone; }

  // The pages [first, end) are gone: none of them is open any more.
  void forget(uint32_t first, uint32_t end);
  // As place() left it.
  void clear();

  uint32_t open_count() const { return count_; }
  // The open pages in the order of opening, 0: the oldest.
  uint32_t open_page(uint32_t index) const { return ring_[(oldest_ + index) % window_]; }
  uint32_t window() const { return window_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static uint32_t table_size(uint32_t window);
  uint32_t home(uint32_t page) const { return page * 0x9e3779b1u >> 8 & mask_; }
  uint32_t find(uint32_t page) const;
  void insert(uint32_t page);
  void remove(uint32_t page);

  uint32_t window_ = 0;
  uint32_t oldest_ = 0, count_ = 0;  // in ring_
  uint32_t last_ = kNoPage;          // counted last
  uint32_t mask_ = 0;
  uint32_t* ring_ = nullptr;
  uint32_t* table_ = nullptr;  // the open pages, each + 1, by hash, probed linearly; at most half full
};

}  // namespace classaccess
