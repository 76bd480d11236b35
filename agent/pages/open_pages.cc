#include "agent/pages/open_pages.h"

#include <sys/syscall.h>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"
#include "agent/pages/page_gate.h"
#include "agent/pages/undisturbed.h"
#include "agent/protect/armed_pages.h"

namespace classaccess {

OpenPages g_open_pages;

// Its holder makes system calls of a few microseconds and may lose the processor.
class OpenPages::Lock {
 public:
  explicit Lock(OpenPages* pages) : flag_(pages->lock_) {
    constexpr int kSpins = 200;
    for (int tries = 0; flag_.test_and_set(std::memory_order_acquire); ++tries) {
      if (tries < kSpins) {
        __builtin_ia32_pause();
      } else {
        raw_syscall(SYS_sched_yield);
      }
    }
  }
  ~Lock() { flag_.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;

 private:
  std::atomic_flag& flag_;
};

bool OpenPages::create(uint64_t low, uint64_t high, const Choice& choice) {
  base_ = low & ~(choice.page_bytes - 1);
  uint64_t pages = (high - base_ + choice.page_bytes - 1) / choice.page_bytes;
  if (pages >= kNoPage) return false;
  low_ = low;
  high_ = high;
  shift_ = static_cast<uint32_t>(__builtin_ctzll(choice.page_bytes));
  pages_ = static_cast<uint32_t>(pages);
  state_ = reserve_array<uint8_t>(pages_);
  if (state_ == nullptr || !windows_.create(choice.window) || !keys_.create(pages_, choice.keys)) return false;
  keys_used_ = choice.keys;
  if (keys_used_ != 0) windows_[WindowPool::kCommon].key = keys_used_ - 1;
  traps_without_key_ = choice.traps_without_key;
  most_keyed_ = choice.most_keyed;
  favoured_ = WindowPool::kNone;
  touches_ = favoured_at_ = 0;
  shared_ = false;
  stopped_ = false;
  round_.fetch_add(1, std::memory_order_relaxed);
  page_bytes_ = choice.page_bytes;
  return true;
}

uint64_t OpenPages::begin_of(uint32_t page) const {
  uint64_t begin = base_ + (uint64_t{page} << shift_);
  return begin < low_ ? low_ : begin;
}

uint64_t OpenPages::end_of(uint32_t page) const {
  uint64_t end = base_ + (uint64_t{page} << shift_) + page_bytes_;
  return end > high_ ? high_ : end;
}

void OpenPages::give_window(PageThread* thread) {
  if (one_window()) {
    thread->window = WindowPool::kCommon;
    return;
  }
  uint32_t index = keys_used_ > 1 ? windows_.claim() : WindowPool::kNone;
  if (index == WindowPool::kNone) return share(thread);
  thread->window = index;
  if (traps_without_key_ == 0) seek_key(thread);
}

void OpenPages::share(PageThread* thread) {
  if (!shared_) {
    raw_log(LogLevel::kWarn,
            "more threads than protection keys: some share one window of open pages (page_windows_shared in "
            "`diagnostic` counts them)");
  }
  shared_ = true;
  count(g_counters.page_windows_shared);
  keys_.wait(thread, false);
  if (thread->window != WindowPool::kNone) windows_.give_back(thread->window);
  thread->window = WindowPool::kCommon;
}

// A window of its own has none yet.
void OpenPages::seek_key(PageThread* thread) {
  if (thread->needless_traps < traps_without_key_) return;
  uint32_t evicted = kNoPage;
  uint32_t key = keys_.find(&evicted);
  if (key != PageKeys::kNone && (evicted == kNoPage || take_key(evicted))) {
    keys_.wait(thread, false);
    keys_.own(key, thread->window);
    windows_[thread->window].key = key;
    return;
  }
  // What it may have a right to, unseen, must not be a page that the common window has closed.
  bool waited = keys_.lendable() == 0 || thread->needless_traps >= traps_without_key_ + kTrapsToWait;
  if (waited && thread->held == 0) return share(thread);
  keys_.wait(thread, true);
}

// The page has the common key again. False: the kernel refuses, all is as it was.
bool OpenPages::take_key(uint32_t page) {
  if (PageGate::close(begin_of(page), end_of(page)) != 0) {
    count(g_counters.page_closes_refused);
    return false;
  }
  keys_.take_out(page);
  return true;
}

void OpenPages::close(uint32_t page, PageThread* thread) {
  if (one_window()) {
    if ((state_[page] & kOpen) == 0) return;
    state_[page] &= static_cast<uint8_t>(~kOpen);
    if (PageGate::close(begin_of(page), end_of(page)) != 0) count(g_counters.page_closes_refused);
    return;
  }
  uint32_t key = keys_.key_of(page);
  if (key == PageKeys::kNone) return;
  if (keys_.is_lent(key)) {
    // The page keeps it, for others or for a time to come, if this thread can give its right up.
    if (!thread->holds(key)) return;
    if (thread->changeable) return keys_.give_up(key, thread);
  } else if (keys_.window_of(key) != thread->window) {
    return;
  }
  if (!take_key(page)) keys_.take_out(page);
}

void OpenPages::open(uint32_t page, const PageThread& thread) {
  if (one_window()) {
    if ((state_[page] & kOpen) == 0) open_for_all(page);
    return;
  }
  const PageWindow& window = windows_[thread.window];
  if (window.key == PageWindow::kNoKey) return;
  const uint32_t key = keys_.key_of(page);
  const bool keyed = key != PageKeys::kNone;
  if (keyed && keys_.window_of(key) == thread.window) return;
  if (thread.window != WindowPool::kCommon) {
    if (keyed && keys_.is_lent(key)) {
      if (keys_.is_held(key) ? !keys_.wanted() : keys_.may_lend()) return keys_.used(key);
    } else {
      // One that another thread has open; where keys are many beside the window, each of the favoured one.
      const bool many = favoured_ == thread.window && 2 * window.model.window() <= keys_.lendable();
      if ((keyed || many) && keys_.may_lend() && lend(page)) return;
    }
  }
  give(page, window.key);
}

bool OpenPages::lend(uint32_t page) {
  uint32_t evicted = kNoPage;
  uint32_t key = keys_.find(&evicted);
  if (key == PageKeys::kNone || (evicted != kNoPage && !take_key(evicted))) return false;
  give(page, key);
  return true;
}

void OpenPages::give(uint32_t page, uint32_t key) {
  count(g_counters.page_opens);
  if (keys_.key_of(page) == PageKeys::kNone && keys_.keyed_pages() >= most_keyed_) {
    count(g_counters.page_opens_refused);
    return;
  }
  keys_.take_out(page);
  if (PageGate::give_key(begin_of(page), end_of(page), key) == 0) return keys_.put(key, page);
  count(g_counters.page_opens_refused);
  // Another thread may have the right to what it was, and a part of a large page may have changed.
  if (PageGate::close(begin_of(page), end_of(page)) != 0) count(g_counters.page_closes_refused);
}

void OpenPages::open_for_all(uint32_t page) {
  state_[page] |= kOpen;
  count(g_counters.page_opens);
  if (PageGate::open(begin_of(page), end_of(page)) != 0) {
    state_[page] &= static_cast<uint8_t>(~kOpen);
    count(g_counters.page_opens_refused);
  }
}

uint32_t OpenPages::take(TouchedPages* touches, PageThread* thread, Counted* counted, uint32_t most, bool* done) {
  Lock lock(this);
  uint32_t count = 0;
  *done = false;
  while (count < most) {
    PageTouch next;
    if (!touches->next(&next)) {
      *done = true;
      break;
    }
    if (!g_armed.armed(next.address)) continue;
    if (thread->window == WindowPool::kNone) give_window(thread);
    uint32_t page = page_of(next.address);
    PageModel::Touch touch = windows_[thread->window].model.touch(page);
    if (!touch.counted) continue;
    if (touch.from == kNoPage) classaccess::count(g_counters.page_windows);
    state_[page] |= kTouched;
    ++touches_;
    if (favoured_ == WindowPool::kNone || favoured_ == thread->window || touches_ - favoured_at_ > kIdle) {
      favoured_ = thread->window;
      favoured_at_ = touches_;
    }
    // Closed before another opens: the kernel's mappings become fewer first.
    if (touch.closed != kNoPage && !stopped_) close(touch.closed, thread);
    counted[count++] = {page, touch.from, next.op};
  }
  if (stopped_ || count == 0) return count;
  const PageWindow& window = windows_[thread->window];
  // What has come in now is at the window's young end.
  uint32_t in = count < window.model.open_count() ? count : window.model.open_count();
  for (uint32_t i = window.model.open_count() - in; i < window.model.open_count(); ++i) {
    open(window.model.open_page(i), *thread);
  }
  keys_.settle(window, thread);
  return count;
}

void OpenPages::settle(uint64_t address, uint32_t had, PageThread* thread) {
  Lock lock(this);
  uint32_t page = page_of(address);
  if (stopped_ || thread->window == WindowPool::kNone || !g_armed.armed(address)) return;
  if (!windows_[thread->window].model.is_open(page)) return;
  ++thread->needless_traps;
  if (one_window()) {
    count(g_counters.page_reopens);
    state_[page] &= static_cast<uint8_t>(~kOpen);
    open_for_all(page);
    return;
  }
  if (windows_[thread->window].key == PageWindow::kNoKey) seek_key(thread);
  uint32_t key = keys_.key_of(page);
  if (key != PageKeys::kNone && (had >> key & 1) != 0) {
    count(g_counters.page_reopens);
    if (PageGate::give_key(begin_of(page), end_of(page), key) != 0) count(g_counters.page_opens_refused);
  } else {
    open(page, *thread);
  }
  keys_.settle(windows_[thread->window], thread);
}

void OpenPages::drop(PageThread* thread) {
  if (thread->held == 0) return;
  Lock lock(this);
  keys_.drop(thread);
}

void OpenPages::adopt(uint32_t held, PageThread* thread) {
  Lock lock(this);
  keys_.adopt(held, thread);
}

void OpenPages::leave(PageThread* thread) {
  if (thread->window == WindowPool::kNone) return;
  Lock lock(this);
  keys_.wait(thread, false);
  PageWindow& window = windows_[thread->window];
  if (thread->window != WindowPool::kCommon) {
    if (window.key != PageWindow::kNoKey) {
      for (uint32_t i = 0; i < window.model.open_count() && !stopped_; ++i) {
        uint32_t page = window.model.open_page(i);
        if (keys_.key_of(page) == window.key && !take_key(page)) keys_.take_out(page);
      }
      keys_.disown(window.key);
    }
    windows_.give_back(thread->window);
  }
  thread->window = WindowPool::kNone;
}

void OpenPages::forget(uint64_t low, uint64_t high) {
  if (!created()) return;
  Undisturbed undisturbed;
  Lock lock(this);
  // A page of which only a part goes stays as it is: its other parts are open, what is committed there anew is
  // closed, and opened when it faults.
  uint64_t first = (low - base_ + page_bytes_ - 1) >> shift_;
  uint64_t end = (high - base_) >> shift_;
  if (low <= low_) first = 0;
  if (high >= high_) end = pages_;
  if (first >= end) return;
  for (uint32_t i = 0; i < windows_.end(); ++i) {
    windows_[i].model.forget(static_cast<uint32_t>(first), static_cast<uint32_t>(end));
  }
  for (uint64_t page = first; page < end; ++page) {
    state_[page] &= static_cast<uint8_t>(~kOpen);
    keys_.take_out(static_cast<uint32_t>(page));
  }
}

void OpenPages::stop() {
  if (!created()) return;
  Lock lock(this);
  stopped_ = true;
}

}  // namespace classaccess
