#include "agent/fault/page_windows.h"

#include "agent/base/counters.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {

__thread PageWindows t_step_pages __attribute__((tls_model("initial-exec")));

namespace {

__thread PageWindows t_handler_pages __attribute__((tls_model("initial-exec")));
__thread uint32_t t_performing __attribute__((tls_model("initial-exec"))) = 0;

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

HandlerWindows::HandlerWindows() { ++t_performing; }

HandlerWindows::~HandlerWindows() {
  if (--t_performing == 0) t_handler_pages.close_all();
}

bool HandlerWindows::take_fault(uint64_t address) {
  if (t_performing == 0) return false;
  t_handler_pages.open(address);
  return true;
}

void HandlerWindows::shut() { t_handler_pages.close_all(); }

}  // namespace classaccess
