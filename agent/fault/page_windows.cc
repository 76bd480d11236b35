#include "agent/fault/page_windows.h"

#include "agent/base/counters.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {

__thread PageWindows t_step_pages __attribute__((tls_model("initial-exec")));

namespace {

__thread HandlerWindows* t_outermost __attribute__((tls_model("initial-exec")));

}  // namespace

void PageWindows::open(uint64_t address) {
  if (!g_armed.armed(address)) return;
  uint64_t page = address & ~(ArmedPages::kPageBytes - 1);
  // Known already: another thread's window on it has closed it meanwhile.
  bool known = false;
  for (uint32_t i = 0; i < count_; ++i) known |= pages_[i] == page;
  if (!known && count_ < kMaxPages) {
    pages_[count_++] = page;
  } else if (!known) {
    g_gate.close_page(pages_[next_]);
    pages_[next_] = page;
    next_ = (next_ + 1) % kMaxPages;
  }
  g_gate.open_page(page);
  count(g_counters.windows);
}

void PageWindows::close_all() {
  for (uint32_t i = 0; i < count_; ++i) g_gate.close_page(pages_[i]);
  count_ = next_ = 0;
}

HandlerWindows::HandlerWindows() {
  if (t_outermost == nullptr) t_outermost = this;
}

HandlerWindows::~HandlerWindows() {
  if (t_outermost != this) return;
  pages_.close_all();
  t_outermost = nullptr;
}

bool HandlerWindows::take_fault(uint64_t address) {
  if (t_outermost == nullptr) return false;
  t_outermost->pages_.open(address);
  return true;
}

void HandlerWindows::shut() {
  if (t_outermost != nullptr) t_outermost->pages_.close_all();
}

}  // namespace classaccess
