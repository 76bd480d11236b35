// The windows of open heap pages: the model, and the protection that follows it.
//
// With page keys each recorded thread has a window of its own. Its first traps are answered without a key: they are
// counted, and performed on the twin, but nothing opens for the thread. When it has trapped a number of times for
// pages that are in its window it gets a key, and no other thread has the right to what it opens (page_keys.h). If
// there is no key for it, it shares the common window from then on. Without page keys, or with the mprotect back end,
// the common window is everybody's, and a page opens for the whole process.
//
// All touches go through one lock, which gives them their order. A page that is in the thread's window but
// faults all the same (opened by another thread for itself, committed anew, or refused by the kernel) is not counted:
// the access is performed on the twin as any other, and the page is opened for this thread.
// Context: create, stop: start and end; take, settle, drop, adopt, leave: signal handler of a recorded thread, or such
// a thread, Undisturbed; forget: any thread, not in a handler.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/pages/page_keys.h"
#include "agent/pages/touched_pages.h"
#include "agent/pages/window_pool.h"

namespace classaccess {

class OpenPages {
 public:
  // Needless traps before a thread gets a key: what touches the heap now and then needs none.
  static constexpr uint32_t kTrapsWithoutKey = 1024;
  // And so many more, where keys are all in use, before it shares the common window.
  static constexpr uint32_t kTrapsToWait = 2048;

  struct Choice {
    uint64_t page_bytes = 4096;
    uint32_t window = 1;
    uint32_t keys = 0;  // how many of g_key's page keys are to be used
    uint32_t traps_without_key = kTrapsWithoutKey;
    uint32_t most_keyed = UINT32_MAX;  // pages with a key at a time: each may cost two of the kernel's mappings
  };
  // The heap's reserved range. False: no memory. All pages are closed.
  bool create(uint64_t low, uint64_t high, const Choice& choice);
  bool created() const { return page_bytes_ != 0; }
  // Counts the calls of create(): what a thread knows is of one of them.
  uint32_t round() const { return round_.load(std::memory_order_relaxed); }

  uint64_t page_bytes() const { return page_bytes_; }
  // Page 0 begins here: `low`, rounded down to a whole page.
  uint64_t base() const { return base_; }
  uint32_t page_of(uint64_t address) const { return static_cast<uint32_t>((address - base_) >> shift_); }
  uint32_t pages() const { return pages_; }
  // Every thread uses the common window.
  bool one_window() const { return keys_used_ == 0; }

  struct Counted {
    uint32_t page = 0;
    uint32_t from = kNoPage;  // the page counted before it in the same window
    Op op = Op::kLoad;
  };
  // Takes touches until `most` have been counted or all are taken (*done); the protection follows. Addresses
  // that are not closed by the back end are passed over. Returns how many were counted.
  uint32_t take(TouchedPages* touches, PageThread* thread, Counted* counted, uint32_t most, bool* done);
  // After a fault at `address` of a thread that had the rights `had`, when take() has counted nothing: the page is in
  // its window, so the thread may use it.
  void settle(uint64_t address, uint32_t had, PageThread* thread);
  // The thread's PKRU has no page key's right any more.
  void drop(PageThread* thread);
  // Its PKRU has these rights, whatever we thought.
  void adopt(uint32_t held, PageThread* thread);
  // The thread ends, and its rights are dropped: its window and key are given back.
  void leave(PageThread* thread);

  // [low, high) is about to be given back: call after its bits in g_armed are cleared. From the return on nothing
  // of it is opened or closed.
  void forget(uint64_t low, uint64_t high);

  // Some thread has touched it.
  bool was_touched(uint32_t page) const { return (__atomic_load_n(&state_[page], __ATOMIC_RELAXED) & kTouched) != 0; }

  // No protection is changed any more.
  void stop();

 private:
  void give_window(PageThread* thread);
  void seek_key(PageThread* thread);
  void share(PageThread* thread);
  void close(uint32_t page, PageThread* thread);
  void open(uint32_t page, const PageThread& thread);
  void open_for_all(uint32_t page);
  bool lend(uint32_t page);
  void give(uint32_t page, uint32_t key);
  bool take_key(uint32_t page);
  uint64_t begin_of(uint32_t page) const;
  uint64_t end_of(uint32_t page) const;

  class Lock;
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  WindowPool windows_;
  PageKeys keys_;
  bool stopped_ = false, shared_ = false;
  std::atomic<uint32_t> round_{0};
  uint32_t keys_used_ = 0, traps_without_key_ = 0, most_keyed_ = 0;
  uint64_t low_ = 0, high_ = 0, base_ = 0, page_bytes_ = 0;
  uint32_t shift_ = 0, pages_ = 0;
  static constexpr uint8_t kOpen = 1;  // for the process, as far as we know
  static constexpr uint8_t kTouched = 2;
  uint8_t* state_ = nullptr;
  // Keys are lent to pages that are its alone only for the window that switches most, as far as counted touches tell:
  // another's takes its place when it has not been counted for so many.
  static constexpr uint32_t kIdle = 64;
  uint32_t favoured_ = WindowPool::kNone;
  uint64_t touches_ = 0, favoured_at_ = 0;
};

extern OpenPages g_open_pages;

}  // namespace classaccess
