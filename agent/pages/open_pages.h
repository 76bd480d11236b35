// The process's window of open heap pages: the model, and the protection that follows it.
//
// All touches go through one lock, which gives them their order. A page that the model has open but
// that faults all the same (opened meanwhile by another thread, committed anew, or refused by the kernel) is
// not counted: the access is performed on the twin as any other, and the page is opened again.
// Context: create, stop: start and end; take: signal handler of a recorded thread, or such a thread inside an
// AgentScope; forget: any thread, not in a handler.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/pages/page_keys.h"
#include "agent/pages/page_model.h"
#include "agent/pages/touched_pages.h"

namespace classaccess {

class OpenPages {
 public:
  // The heap's reserved range; `keys`: how many of g_key's page keys are to be used. False: no memory. All pages
  // are closed.
  bool create(uint64_t low, uint64_t high, uint64_t page_bytes, uint32_t window, uint32_t keys = 0);
  bool created() const { return page_bytes_ != 0; }

  uint64_t page_bytes() const { return page_bytes_; }
  // Page 0 begins here: `low`, rounded down to a whole page.
  uint64_t base() const { return base_; }
  uint32_t page_of(uint64_t address) const { return static_cast<uint32_t>((address - base_) >> shift_); }
  uint32_t pages() const { return pages_; }

  struct Counted {
    uint32_t page = 0;
    uint32_t from = kNoPage;  // the page counted before it, by whichever thread
    Op op = Op::kLoad;
  };
  // Takes touches until `most` have been counted or all are taken (*done); the protection follows. Addresses
  // that are not closed by the back end are passed over. Returns how many were counted.
  uint32_t take(TouchedPages* touches, PageRights* rights, Counted* counted, uint32_t most, bool* done);
  // After a fault at `address` of a thread that had the rights `had`, when take() has counted nothing: the page is in
  // the window, so the thread may use it.
  void settle(uint64_t address, uint32_t had, PageRights* rights);
  // The thread's PKRU has no page key's right any more.
  void drop(PageRights* rights);
  // Its PKRU has these rights, whatever we thought.
  void adopt(uint32_t held, PageRights* rights);

  // [low, high) is about to be given back: call after its bits in g_armed are cleared. From the return on nothing
  // of it is opened or closed.
  void forget(uint64_t low, uint64_t high);

  // Some thread has touched it.
  bool was_touched(uint32_t page) const { return (__atomic_load_n(&state_[page], __ATOMIC_RELAXED) & kTouched) != 0; }

  // No protection is changed any more.
  void stop();

 private:
  void close(uint32_t page, const PageRights& rights);
  void open(uint32_t page, const PageRights& rights);
  void open_for_all(uint32_t page);
  uint64_t begin_of(uint32_t page) const;
  uint64_t end_of(uint32_t page) const;

  class Lock;
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  PageModel model_;
  PageKeys keys_;
  bool stopped_ = false;
  uint64_t low_ = 0, high_ = 0, base_ = 0, page_bytes_ = 0;
  uint32_t shift_ = 0, pages_ = 0;
  static constexpr uint8_t kOpen = 1;  // for the process, as far as we know
  static constexpr uint8_t kTouched = 2;
  uint8_t* state_ = nullptr;
  // When the page was closed last, in counted touches. With few keys beside the window one that is touched again soon
  // gets one.
  static constexpr uint32_t kSoon = 64;
  uint32_t touches_ = 0;
  uint32_t* closed_at_ = nullptr;
};

extern OpenPages g_open_pages;

}  // namespace classaccess
