#include "agent/pages/window_pool.h"

#include "agent/base/reserve.h"

namespace classaccess {

bool WindowPool::create(uint32_t window) {
  // Address space only; 196 KB each for the largest window.
  constexpr size_t kMostBytes = 64 << 20;
  const size_t bytes = PageModel::bytes(window);
  if (bytes == 0) return false;
  count_ = kMostBytes / bytes < kMost ? static_cast<uint32_t>(kMostBytes / bytes) : kMost;
  char* memory = reserve_array<char>(count_ * bytes);
  if (memory == nullptr) return false;
  for (uint32_t i = 0; i < count_; ++i) {
    windows_[i] = {};
    windows_[i].model.place(window, memory + i * bytes);
  }
  free_count_ = 0;
  begun_ = kCommon + 1;
  return true;
}

uint32_t WindowPool::claim() {
  if (free_count_ != 0) return free_[--free_count_];
  return begun_ < count_ ? begun_++ : kNone;
}

void WindowPool::give_back(uint32_t index) {
  windows_[index].model.clear();
  windows_[index].key = PageWindow::kNoKey;
  free_[free_count_++] = index;
}

}  // namespace classaccess
