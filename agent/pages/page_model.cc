#include "agent/pages/page_model.h"

#include "agent/base/reserve.h"

namespace classaccess {

PageChoice choose_pages(uint64_t page_bytes, uint32_t window, uint64_t heap_bytes, uint64_t mappings) {
  constexpr uint64_t kSmall = 4096, kMiddle = 65536, kLarge = 2u << 20;
  PageChoice choice{page_bytes, window};
  auto needed = [&] {
    uint64_t pages = heap_bytes / choice.page_bytes + 1;
    return 2 * (choice.window < pages ? choice.window : pages);
  };
  while (needed() > mappings && choice.page_bytes < kLarge) {
    choice.page_bytes = choice.page_bytes == kSmall ? kMiddle : kLarge;
  }
  if (needed() > mappings) choice.window = mappings < 4 ? 1 : static_cast<uint32_t>(mappings / 2);
  return choice;
}

bool PageModel::create(uint32_t pages, uint32_t window) {
  if (pages == 0 || window == 0 || window > kMaxWindow) return false;
  window_ = window;
  oldest_ = count_ = 0;
  last_ = kNoPage;
  ring_ = reserve_array<uint32_t>(window);
  in_window_ = reserve_array<uint8_t>(pages);
  return ring_ != nullptr && in_window_ != nullptr;
}

PageModel::Touch PageModel::touch(uint32_t page) {
  Touch touch;
  if (is_open(page)) return touch;
  touch.counted = true;
  touch.from = last_;
  last_ = page;
  if (count_ == window_) {
    touch.closed = ring_[oldest_];
    in_window_[touch.closed] = 0;
    oldest_ = (oldest_ + 1) % window_;
    --count_;
  }
  ring_[(oldest_ + count_) % window_] = page;
  in_window_[page] = 1;
  ++count_;
  return touch;
}

void PageModel::forget(uint32_t first, uint32_t end) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    uint32_t page = open_page(i);
    if (page >= first && page < end) {
      in_window_[page] = 0;
    } else {
      ring_[(oldest_ + kept++) % window_] = page;
    }
  }
  count_ = kept;
}

}  // namespace classaccess
