// The pages that this thread has opened for one access, with the mprotect back end: for a
// single step, and without a twin view (twin=off) for all that the handler reads and
// writes. What other threads do to them meanwhile is not seen: each opening counts as a
// window.
// Context: signal handler of the thread.
#pragma once

#include <cstdint>

namespace classaccess {

class PageWindows {
 public:
  // A gather's 16 lanes, each over a page's end, and the headers that are read for it.
  static constexpr uint32_t kMaxPages = 40;

  // The page of `address`, if it is armed. With all places taken the page opened first is
  // closed: whoever still needs it faults and opens it again.
  void open(uint64_t address);
  void close_all();

 private:
  uint64_t pages_[kMaxPages] = {};
  uint32_t count_ = 0;
  uint32_t next_ = 0;  // the place to be given away once all are taken
};

// Of the single step in flight.
extern __thread PageWindows t_step_pages __attribute__((tls_model("initial-exec")));

// What the handler itself opens while it performs an access (twin=off). A fault of its own
// on an armed page between begin and end opens that page.
class HandlerWindows {
 public:
  HandlerWindows();
  ~HandlerWindows();
  HandlerWindows(const HandlerWindows&) = delete;
  HandlerWindows& operator=(const HandlerWindows&) = delete;

  // True if a fault on the armed page of `address` was the handler's own: it is open now.
  static bool take_fault(uint64_t address);
  // The access is performed; what is read from now on opens pages anew.
  static void shut();

 private:
  // Of the outermost one: a fault inside a handler shares them. Not in thread-local storage, of
  // which a library that is loaded late gets little (1,664 bytes for all in glibc 2.36).
  PageWindows pages_;
};

}  // namespace classaccess
