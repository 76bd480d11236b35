#include "agent/fault/signal_chain.h"

#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

constexpr uint64_t kSiginfo = SA_SIGINFO;
constexpr uint64_t kRestorer = 0x04000000;  // SA_RESTORER
constexpr long kMaskBytes = 8;

uint64_t bit(int signal) { return 1ull << (signal - 1); }

// Asynchronous signals wait until our handler is done; a fault inside it must not,
// since a fault with its signal blocked kills the process.
uint64_t handler_mask() {
  return ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGKILL) | bit(SIGSTOP));
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

bool SignalChain::install(int signal, Action action) {
  signal_ = signal;
  KernelAction wanted = {reinterpret_cast<void*>(action), kSiginfo | SA_ONSTACK | SA_NODEFER | SA_RESTART | kRestorer,
                         reinterpret_cast<void*>(classaccess_sigreturn), handler_mask()};
  // glibc's restorer is the one unwinders know: take it from the previous action.
  if (raw_syscall(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(&previous_), kMaskBytes) != 0) return false;
  if ((previous_.flags & kRestorer) != 0 && previous_.restorer != nullptr) wanted.restorer = previous_.restorer;
  ours_ = wanted;
  return raw_syscall(SYS_rt_sigaction, signal, reinterpret_cast<long>(&wanted), 0, kMaskBytes) == 0;
}

bool SignalChain::in_front() const {
  KernelAction now = {};
  raw_syscall(SYS_rt_sigaction, signal_, 0, reinterpret_cast<long>(&now), kMaskBytes);
  return now.handler == ours_.handler;
}

void SignalChain::restore() {
  if (signal_ == 0 || !in_front()) return;
  raw_syscall(SYS_rt_sigaction, signal_, reinterpret_cast<long>(&previous_), 0, kMaskBytes);
}

void SignalChain::chain(siginfo_t* info, void* context) const {
  auto handler = reinterpret_cast<uint64_t>(previous_.handler);
  if (handler == reinterpret_cast<uint64_t>(SIG_IGN) && info->si_code <= 0) return;
  if (handler == reinterpret_cast<uint64_t>(SIG_DFL) || handler == reinterpret_cast<uint64_t>(SIG_IGN)) {
    // A synchronous fault happens again on return and then has the default effect.
    KernelAction standard = previous_;
    standard.handler = reinterpret_cast<void*>(SIG_DFL);
    raw_syscall(SYS_rt_sigaction, signal_, reinterpret_cast<long>(&standard), 0, kMaskBytes);
    // A sent signal, and a trap (whose PC is already behind it), would not come again.
    if (info->si_code <= 0 || signal_ == SIGTRAP) {
      raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid), raw_syscall(SYS_gettid), signal_);
    }
    return;
  }
  if ((previous_.flags & kSiginfo) != 0) {
    reinterpret_cast<Action>(previous_.handler)(signal_, info, context);
  } else {
    reinterpret_cast<void (*)(int)>(previous_.handler)(signal_);
  }
}

}  // namespace classaccess
