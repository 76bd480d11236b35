#include "agent/fault/signal_chain.h"

#include <sys/syscall.h>
#include <ucontext.h>

#include "agent/base/raw_syscall.h"

namespace classaccess {

__thread uint64_t t_hidden_mask __attribute__((tls_model("initial-exec"))) = 0;

namespace {

constexpr uint64_t kSiginfo = SA_SIGINFO;
constexpr uint64_t kOnStack = SA_ONSTACK;
constexpr uint64_t kNoDefer = SA_NODEFER;
constexpr uint64_t kOneShot = static_cast<uint32_t>(SA_RESETHAND);
constexpr uint64_t kRestorer = 0x04000000;  // SA_RESTORER
constexpr long kMaskBytes = 8;

// Asynchronous signals wait until our handler is done; a fault inside it must not,
// since a fault with its signal blocked kills the process.
constexpr uint64_t kHandlerMask =
    ~(kGuardedSignals | signal_bit(SIGFPE) | signal_bit(SIGILL) | signal_bit(SIGKILL) | signal_bit(SIGSTOP));

bool is(const KernelAction& action, void (*handler)(int)) { return action.handler == reinterpret_cast<void*>(handler); }

bool same(const KernelAction& a, const KernelAction& b) {
  return a.handler == b.handler && a.mask == b.mask && (a.flags | kRestorer) == (b.flags | kRestorer);
}

}  // namespace

asm(R"(
  .text
  .p2align 4
  .globl classaccess_sigreturn
  .hidden classaccess_sigreturn
  .type classaccess_sigreturn,@function
  nop
classaccess_sigreturn:
  mov $15, %eax
  syscall
  .size classaccess_sigreturn, .-classaccess_sigreturn
)");
extern "C" void classaccess_sigreturn();

void SignalChain::read(KernelAction* now) const {
  raw_syscall(SYS_rt_sigaction, signal_, 0, reinterpret_cast<long>(now), kMaskBytes);
}

const KernelAction* SignalChain::keep(const KernelAction& action) {
  uint32_t n = kept_.fetch_add(1, std::memory_order_relaxed);
  // Number 0 stays what was there first.
  KernelAction* slot = &actions_[n < kActions ? n : 1 + n % (kActions - 1)];
  *slot = action;
  return slot;
}

int SignalChain::entry_of(const void* handler) const {
  for (int i = 0; i < count_; ++i) {
    if (reinterpret_cast<const void*>(entries_[i]) == handler) return i;
  }
  return -1;
}

bool SignalChain::put(int entry, KernelAction* replaced) {
  uint64_t stack = behind_[entry].load(std::memory_order_acquire)->flags & kOnStack;
  KernelAction wanted = {reinterpret_cast<void*>(entries_[entry]),
                         kSiginfo | kNoDefer | uint64_t{SA_RESTART} | kRestorer | stack, const_cast<void*>(restorer_),
                         kHandlerMask};
  return raw_syscall(SYS_rt_sigaction, signal_, reinterpret_cast<long>(&wanted), reinterpret_cast<long>(replaced),
                     kMaskBytes) == 0;
}

bool SignalChain::install(int signal, const Action* entries, int count) {
  signal_ = signal;
  count_ = count < kEntries ? count : kEntries;
  for (int i = 0; i < count_; ++i) entries_[i] = entries[i];
  KernelAction previous = {};
  if (raw_syscall(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(&previous), kMaskBytes) != 0) return false;
  // glibc's restorer is the one unwinders know: take it from the previous action.
  bool theirs = (previous.flags & kRestorer) != 0 && previous.restorer != nullptr;
  restorer_ = theirs ? previous.restorer : reinterpret_cast<void*>(classaccess_sigreturn);
  kept_.store(0, std::memory_order_relaxed);
  used_.store(1, std::memory_order_relaxed);
  behind_[0].store(keep(previous), std::memory_order_release);
  return put(0, nullptr);
}

bool SignalChain::in_front() const {
  KernelAction now = {};
  read(&now);
  return entry_of(now.handler) >= 0;
}

void* SignalChain::retake() {
  if (signal_ == 0) return nullptr;
  void* noticed = nullptr;
  KernelAction now = {};
  read(&now);
  // More than once only if another comes in between.
  for (int tries = 0; tries < 4 && entry_of(now.handler) < 0; ++tries) {
    noticed = now.handler;
    int entry = -1;
    int used = used_.load(std::memory_order_relaxed);
    for (int i = 0; i < used && i < count_; ++i) {
      const KernelAction* known = behind_[i].load(std::memory_order_acquire);
      if (known != nullptr && known->handler == now.handler) entry = i;
    }
    if (entry < 0) {
      entry = used_.fetch_add(1, std::memory_order_relaxed);
      // As many handlers one over the other: the last two share an entry.
      if (entry >= count_) entry = count_ - 1;
    }
    behind_[entry].store(same(now, actions_[0]) ? &actions_[0] : keep(now), std::memory_order_release);
    put(entry, &now);
  }
  return noticed;
}

void SignalChain::exchange(const KernelAction* wanted, KernelAction* old) {
  retake();
  KernelAction now = {};
  read(&now);
  int entry = entry_of(now.handler);
  if (entry < 0) entry = 0;
  const KernelAction* before = behind_[entry].load(std::memory_order_acquire);
  if (wanted != nullptr) {
    KernelAction complete = *wanted;
    complete.flags |= kRestorer;
    complete.restorer = const_cast<void*>(restorer_);
    const KernelAction* next = same(complete, actions_[0]) ? &actions_[0] : keep(complete);
    before = behind_[entry].exchange(next, std::memory_order_acq_rel);
    if (((before->flags ^ wanted->flags) & kOnStack) != 0) put(entry, nullptr);
  }
  if (old != nullptr) *old = *before;
}

void SignalChain::restore() {
  if (signal_ == 0) return;
  KernelAction now = {};
  read(&now);
  int entry = entry_of(now.handler);
  if (entry < 0) return;
  raw_syscall(SYS_rt_sigaction, signal_, reinterpret_cast<long>(behind_[entry].load(std::memory_order_acquire)), 0,
              kMaskBytes);
}

void SignalChain::chain(int entry, bool from_kernel, siginfo_t* info, void* context) {
  const KernelAction* behind = behind_[entry].load(std::memory_order_acquire);
  KernelAction action = *behind;
  bool fault = info->si_code > 0;
  if (is(action, SIG_IGN) && !fault) return;
  if (is(action, SIG_DFL) || is(action, SIG_IGN) || (fault && (t_hidden_mask & signal_bit(signal_)) != 0)) {
    // A synchronous fault happens again on return and then has the default effect.
    action.handler = reinterpret_cast<void*>(SIG_DFL);
    raw_syscall(SYS_rt_sigaction, signal_, reinterpret_cast<long>(&action), 0, kMaskBytes);
    // A sent signal, and a trap (whose PC is already behind it), would not come again.
    if (!fault || signal_ == SIGTRAP) {
      raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid), raw_syscall(SYS_gettid), signal_);
    }
    return;
  }
  if ((action.flags & kOneShot) != 0) {
    KernelAction standard = {};
    behind_[entry].compare_exchange_strong(behind, keep(standard), std::memory_order_acq_rel);
  }
  // HotSpot's blocks what ours does and opens the rest first thing.
  if (from_kernel && action.handler != actions_[0].handler) {
    uint64_t mask = *reinterpret_cast<uint64_t*>(&static_cast<ucontext_t*>(context)->uc_sigmask) | action.mask;
    if ((action.flags & kNoDefer) == 0) mask |= signal_bit(signal_);
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask), 0, kMaskBytes);
  }
  // Without SA_SIGINFO too: the kernel fills all three registers, and some handlers rely on it.
  reinterpret_cast<Action>(action.handler)(signal_, info, context);
}

}  // namespace classaccess
