#include "agent/pages/open_pages.h"

#include <sys/syscall.h>

#include "agent/base/counters.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"
#include "agent/pages/page_gate.h"
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

bool OpenPages::create(uint64_t low, uint64_t high, uint64_t page_bytes, uint32_t window, uint32_t keys) {
  base_ = low & ~(page_bytes - 1);
  uint64_t pages = (high - base_ + page_bytes - 1) / page_bytes;
  if (pages >= kNoPage) return false;
  low_ = low;
  high_ = high;
  shift_ = static_cast<uint32_t>(__builtin_ctzll(page_bytes));
  pages_ = static_cast<uint32_t>(pages);
  state_ = reserve_array<uint8_t>(pages_);
  closed_at_ = reserve_array<uint32_t>(pages_);
  touches_ = kSoon;
  if (state_ == nullptr || closed_at_ == nullptr || !model_.create(pages_, window) || !keys_.create(pages_, keys))
    return false;
  stopped_ = false;
  page_bytes_ = page_bytes;
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

void OpenPages::close(uint32_t page, const PageRights& rights) {
  closed_at_[page] = touches_;
  uint32_t slot = keys_.slot_of(page);
  if (slot != PageKeys::kNone) {
    // It keeps its key if the thread that traps is the only one with the right, and loses it.
    if (!keys_.others(slot, rights)) return;
    keys_.take_out(page);
  } else if ((state_[page] & kOpen) == 0) {
    return;
  }
  state_[page] &= static_cast<uint8_t>(~kOpen);
  if (PageGate::close(begin_of(page), end_of(page)) != 0) count(g_counters.page_closes_refused);
}

void OpenPages::open(uint32_t page, const PageRights& rights) {
  uint32_t slot = keys_.slot_of(page);
  if (slot != PageKeys::kNone) return keys_.used(slot);
  if ((state_[page] & kOpen) != 0) return;
  // Where the window takes most of the keys, only a page that is touched again soon gets one: the others would drive
  // out those that are.
  const bool scarce = 2 * model_.window() > keys_.slots();
  if (scarce && touches_ - closed_at_[page] >= kSoon) return open_for_all(page);
  uint32_t evicted = kNoPage;
  slot = keys_.find(model_, rights, &evicted);
  if (slot == PageKeys::kNone) return open_for_all(page);
  if (evicted != kNoPage) {
    keys_.take_out(evicted);
    if (PageGate::close(begin_of(evicted), end_of(evicted)) != 0) {
      // It still has the key: the slot cannot be another's.
      keys_.put(slot, evicted);
      count(g_counters.page_closes_refused);
      return open_for_all(page);
    }
  }
  count(g_counters.page_opens);
  if (PageGate::give_key(begin_of(page), end_of(page), slot) != 0) {
    count(g_counters.page_opens_refused);
    return;
  }
  keys_.put(slot, page);
}

void OpenPages::open_for_all(uint32_t page) {
  state_[page] |= kOpen;
  count(g_counters.page_opens);
  if (PageGate::open(begin_of(page), end_of(page)) != 0) {
    state_[page] &= static_cast<uint8_t>(~kOpen);
    count(g_counters.page_opens_refused);
  }
}

uint32_t OpenPages::take(TouchedPages* touches, PageRights* rights, Counted* counted, uint32_t most, bool* done) {
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
    uint32_t page = page_of(next.address);
    PageModel::Touch touch = model_.touch(page);
    if (!touch.counted) continue;
    state_[page] |= kTouched;
    ++touches_;
    // Closed before another opens: the kernel's mappings become fewer first.
    if (touch.closed != kNoPage && !stopped_) close(touch.closed, *rights);
    counted[count++] = {page, touch.from, next.op};
  }
  if (stopped_) return count;
  // What has come in now is at the window's young end.
  uint32_t in = count < model_.open_count() ? count : model_.open_count();
  for (uint32_t i = model_.open_count() - in; i < model_.open_count(); ++i) open(model_.open_page(i), *rights);
  keys_.settle(model_, rights);
  return count;
}

void OpenPages::settle(uint64_t address, uint32_t had, PageRights* rights) {
  Lock lock(this);
  uint32_t page = page_of(address);
  if (stopped_ || !g_armed.armed(address) || !model_.is_open(page)) return;
  uint32_t slot = keys_.slot_of(page);
  if (slot == PageKeys::kNone) {
    classaccess::count(g_counters.page_reopens);
    state_[page] &= static_cast<uint8_t>(~kOpen);
    open(page, *rights);
  } else if ((had >> slot & 1) != 0) {
    classaccess::count(g_counters.page_reopens);
    if (PageGate::give_key(begin_of(page), end_of(page), slot) != 0) classaccess::count(g_counters.page_opens_refused);
  }
  keys_.settle(model_, rights);
}

void OpenPages::drop(PageRights* rights) {
  if (rights->held == 0) return;
  Lock lock(this);
  keys_.drop(rights);
}

void OpenPages::adopt(uint32_t held, PageRights* rights) {
  Lock lock(this);
  keys_.adopt(held, rights);
}

void OpenPages::forget(uint64_t low, uint64_t high) {
  if (!created()) return;
  // A handler of this thread may wait for the lock that it interrupted.
  uint64_t all = ~0ull, before = 0;
  raw_syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&all), reinterpret_cast<long>(&before),
              8);
  {
    Lock lock(this);
    // A page of which only a part goes stays as it is: its other parts are open, what is committed there anew is
    // closed, and opened when it faults.
    uint64_t first = (low - base_ + page_bytes_ - 1) >> shift_;
    uint64_t end = (high - base_) >> shift_;
    if (low <= low_) first = 0;
    if (high >= high_) end = pages_;
    if (first < end) {
      model_.forget(static_cast<uint32_t>(first), static_cast<uint32_t>(end));
      for (uint64_t page = first; page < end; ++page) {
        state_[page] &= static_cast<uint8_t>(~kOpen);
        keys_.take_out(static_cast<uint32_t>(page));
      }
    }
  }
  raw_syscall(SYS_rt_sigprocmask, 2, reinterpret_cast<long>(&before), 0, 8);
}

void OpenPages::stop() {
  if (!created()) return;
  Lock lock(this);
  stopped_ = true;
}

}  // namespace classaccess
