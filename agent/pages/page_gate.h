// Opens and closes one page of the model for every thread of the process.
//
// A page of the model is 4 KB, 64 KB or 2 MB of addresses; what of it is committed and closed by the
// back end (g_armed) is opened, the rest is left alone. With keys an open page has the process's
// default key, with mprotect it is readable and writable. With keys a page may also have one of its own.
// Context: whoever holds the lock of OpenPages; system calls only.
#pragma once

#include <cstdint>

namespace classaccess {

class PageGate {
 public:
  // 0, or the errno of the first part that was refused (ENOMEM: no more mappings). Parts that are
  // done stay done.
  static int open(uint64_t low, uint64_t high);
  static int close(uint64_t low, uint64_t high);
  // One of the page keys: open for threads that have the right to it.
  static int give_key(uint64_t low, uint64_t high, uint32_t slot);
};

}  // namespace classaccess
