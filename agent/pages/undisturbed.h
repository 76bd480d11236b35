// No handler of the program's interrupts this thread while it lives: one that touches the heap would wait for the lock
// of OpenPages, which the thread may hold. What faults cause comes through: blocked, it would kill the process.
// Context: outside of signal handlers; system calls only.
#pragma once

#include <signal.h>
#include <sys/syscall.h>

#include <cstdint>

#include "agent/base/raw_syscall.h"

namespace classaccess {

class Undisturbed {
 public:
  Undisturbed() {
    uint64_t mask = ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGTRAP) | bit(SIGFPE) | bit(SIGILL));
    raw_syscall(SYS_rt_sigprocmask, kSetMask, reinterpret_cast<long>(&mask), reinterpret_cast<long>(&before_), 8);
  }
  ~Undisturbed() { raw_syscall(SYS_rt_sigprocmask, kSetMask, reinterpret_cast<long>(&before_), 0, 8); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  static constexpr uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }
  static constexpr long kSetMask = 2;  // SIG_SETMASK of the system call
  uint64_t before_ = 0;
};

}  // namespace classaccess
