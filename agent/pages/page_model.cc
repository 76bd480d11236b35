#include "agent/pages/page_model.h"

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

uint32_t PageModel::table_size(uint32_t window) {
  uint32_t size = 2;
  while (size < 2 * window) size *= 2;
  return size;
}

size_t PageModel::bytes(uint32_t window) {
  if (window == 0 || window > kMaxWindow) return 0;
  return (size_t{window} + table_size(window)) * sizeof(uint32_t);
}

void PageModel::place(uint32_t window, void* memory) {
  window_ = window;
  oldest_ = count_ = 0;
  last_ = kNoPage;
  mask_ = table_size(window) - 1;
  ring_ = static_cast<uint32_t*>(memory);
  table_ = ring_ + window;
}

uint32_t PageModel::find(uint32_t page) const {
  for (uint32_t at = home(page); table_[at] != 0; at = (at + 1) & mask_) {
    if (table_[at] == page + 1) return at;
  }
  return kNone;
}

void PageModel::insert(uint32_t page) {
  uint32_t at = home(page);
  while (table_[at] != 0) at = (at + 1) & mask_;
  table_[at] = page + 1;
}

// What follows without a gap moves up, where that does not put it before its home.
void PageModel::remove(uint32_t page) {
  uint32_t hole = find(page);
  if (hole == kNone) return;
  for (uint32_t at = (hole + 1) & mask_; table_[at] != 0; at = (at + 1) & mask_) {
    uint32_t from_home = (at - home(table_[at] - 1)) & mask_;
    if (from_home < ((at - hole) & mask_)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = 0;
}

PageModel::Touch PageModel::touch(uint32_t page) {
  Touch touch;
  if (is_open(page)) return touch;
  touch.counted = true;
  touch.from = last_;
  last_ = page;
  if (count_ == window_) {
    touch.closed = ring_[oldest_];
    remove(touch.closed);
    oldest_ = (oldest_ + 1) % window_;
    --count_;
  }
  ring_[(oldest_ + count_) % window_] = page;
  insert(page);
  ++count_;
  return touch;
}

void PageModel::forget(uint32_t first, uint32_t end) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    uint32_t page = open_page(i);
    if (page >= first && page < end) {
      remove(page);
    } else {
      ring_[(oldest_ + kept++) % window_] = page;
    }
  }
  count_ = kept;
}

void PageModel::clear() {
  for (uint32_t i = 0; i < count_; ++i) remove(open_page(i));
  oldest_ = count_ = 0;
  last_ = kNoPage;
}

}  // namespace classaccess
