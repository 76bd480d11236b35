// The signal actions that were there before ours, and passing a signal on to them.
// Context: install: VMInit; chain: signal handler.
#pragma once

#include <signal.h>

#include <cstdint>

namespace classaccess {

class SignalChain {
 public:
  using Action = void (*)(int, siginfo_t*, void*);

  // Puts `action` in front for `signal` by the rt_sigaction system call itself: under
  // libjsig the C library's sigaction would only be recorded. False on error.
  bool install(int signal, Action action);
  // Puts the previous action back, if ours is still in front.
  void restore();
  // Whether ours is the kernel's action now.
  bool in_front() const;

  // As if our handler had not been there. May not return.
  void chain(siginfo_t* info, void* context) const;

 private:
  // The kernel's struct sigaction (x86-64).
  struct KernelAction {
    void* handler;
    uint64_t flags;
    void* restorer;
    uint64_t mask;
  };
  int signal_ = 0;
  KernelAction ours_ = {};
  KernelAction previous_ = {};
};

}  // namespace classaccess
