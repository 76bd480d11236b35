// The signal actions that were there before ours, and passing a signal on to them.
//
// A library may put itself in front later by the system call itself (its libc call is
// taken in by exchange(), see jvmti/signal_calls.h). retake() then puts ours back in
// front with theirs behind it, under another of our entry functions: entry g passes on to
// action g only. What the library saved as "the handler before mine" was an older entry,
// so its own passing on goes to what was there before it, never round in a circle; and
// when it puts that entry back, things are as they were.
// Context: install, restore: start and end; retake: writer thread; exchange: any thread,
// also in a signal handler; chain: signal handler.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace classaccess {

// The kernel's struct sigaction (x86-64, uapi/asm/signal.h).
struct KernelAction {
  void* handler;
  uint64_t flags;
  void* restorer;
  uint64_t mask;
};

constexpr uint64_t signal_bit(int signal) { return 1ull << (signal - 1); }

// Signals whose faults and steps are ours: never blocked on a thread that may trap.
constexpr uint64_t kGuardedSignals = signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGTRAP);
// Of these, what this thread's program believes to be blocked (jvmti/signal_calls.h). A
// fault of its own then has the default effect, as the kernel would have it.
extern __thread uint64_t t_hidden_mask __attribute__((tls_model("initial-exec")));

class SignalChain {
 public:
  using Action = void (*)(int, siginfo_t*, void*);
  static constexpr int kEntries = 8;

  // Puts entries[0] in front for `signal` by the rt_sigaction system call itself: under
  // libjsig the C library's sigaction would only be recorded. False on error. On an
  // alternate stack only if the action before ours is: a thread's small one would not
  // hold the frame of a fault that it never had without us.
  bool install(int signal, const Action* entries, int count);
  bool install(int signal, Action action) { return install(signal, &action, 1); }
  // Puts the previous action back, if ours is still in front.
  void restore();
  // Whether one of ours is the kernel's action now.
  bool in_front() const;
  // As entry of the function that the kernel or another handler has called: did the
  // kernel? Else signals may be blocked that our handler needs.
  bool called_by_kernel(const void* return_address) const { return return_address == restorer_; }

  // Ours in front again, if it is not. The handler that was there, or nullptr.
  void* retake();

  // sigaction(2) as if ours were not there. `wanted` and `old` may be null.
  void exchange(const KernelAction* wanted, KernelAction* old);

  // As if our handler had not been there. May not return. `from_kernel`: see above.
  void chain(int entry, bool from_kernel, siginfo_t* info, void* context);
  void chain(siginfo_t* info, void* context) { chain(0, true, info, context); }
  // The handler behind `entry` is the one that was there at install().
  bool first_behind(int entry) const {
    return behind_[entry].load(std::memory_order_acquire)->handler == actions_[0].handler;
  }

 private:
  int entry_of(const void* handler) const;
  const KernelAction* keep(const KernelAction& action);
  bool put(int entry, KernelAction* replaced);
  void read(KernelAction* now) const;

  int signal_ = 0;
  int count_ = 0;
  Action entries_[kEntries] = {};
  const void* restorer_ = nullptr;
  std::atomic<int> used_{1};
  std::atomic<const KernelAction*> behind_[kEntries] = {};
  // Never freed while it may be read: 256 actions later at the earliest.
  static constexpr uint32_t kActions = 256;
  std::atomic<uint32_t> kept_{0};
  KernelAction actions_[kActions] = {};
};

}  // namespace classaccess
