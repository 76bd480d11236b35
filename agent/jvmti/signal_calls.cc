#include "agent/jvmti/signal_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/fault/fault_handler.h"
#include "agent/jvmti/library_hooks.h"

namespace classaccess {
namespace {

uint64_t g_libjvm_low, g_libjvm_high;
std::atomic<bool> g_said{false};
// Taken in by sigaction; spoken of at the next tick, since the call may come from a signal
// handler.
std::atomic<int> g_taken_in_signal{0};
std::atomic<uint64_t> g_taken_in_handler{0};

const char* signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    default: return "SIGTRAP";
  }
}

// The file that is mapped at an address. Not dladdr: the writer may not wait for the
// dynamic linker, whose lock is held while constructors run.
std::string file_at(uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long low, high;
    if (sscanf(line.c_str(), "%lx-%lx", &low, &high) != 2 || address < low || address >= high) continue;
    size_t path = line.find('/');
    return path != std::string::npos ? line.substr(path) : "unnamed code";
  }
  return "unmapped code";
}

void say(int signal, uint64_t handler, const char* what) {
  if (g_said.exchange(true, std::memory_order_relaxed)) return;
  std::string file = handler > 1 ? file_at(handler) : "the default action";
  raw_log(LogLevel::kWarn, "another %s handler (%s) %s; ours stays in front and passes on to it what is not ours",
          signal_name(signal), file.c_str(), what);
}

bool ours(int signal) {
  return FaultHandler::chain_of(signal) != nullptr &&
         g_recording.load(std::memory_order_relaxed) != RecordingState::kOff;
}

KernelAction to_kernel(const struct sigaction& action) {
  KernelAction kernel = {};
  kernel.handler = reinterpret_cast<void*>(action.sa_handler);
  kernel.flags = static_cast<uint32_t>(action.sa_flags);
  memcpy(&kernel.mask, &action.sa_mask, sizeof(kernel.mask));
  return kernel;
}

void from_kernel(const KernelAction& kernel, struct sigaction* action) {
  memset(action, 0, sizeof(*action));
  action->sa_handler = reinterpret_cast<void (*)(int)>(kernel.handler);
  action->sa_flags = static_cast<int>(kernel.flags);
  memcpy(&action->sa_mask, &kernel.mask, sizeof(kernel.mask));
  action->sa_restorer = reinterpret_cast<void (*)()>(kernel.restorer);
}

void exchange(int signal, const KernelAction* wanted, KernelAction* old, const void* caller) {
  KernelAction before = {};
  FaultHandler::chain_of(signal)->exchange(wanted, &before);
  if (old != nullptr) *old = before;
  auto from = reinterpret_cast<uint64_t>(caller);
  if (wanted == nullptr || wanted->handler == before.handler || from - g_libjvm_low < g_libjvm_high - g_libjvm_low) {
    return;
  }
  count(g_counters.handlers_behind);
  g_taken_in_handler.store(reinterpret_cast<uint64_t>(wanted->handler), std::memory_order_relaxed);
  g_taken_in_signal.store(signal, std::memory_order_release);
}

#define CALLER __builtin_return_address(0)

int (*o_sigaction)(int, const struct sigaction*, struct sigaction*);
int h_sigaction(int signal, const struct sigaction* wanted, struct sigaction* old) {
  if (!ours(signal)) return o_sigaction(signal, wanted, old);
  KernelAction next = {}, before = {};
  if (wanted != nullptr) next = to_kernel(*wanted);
  exchange(signal, wanted != nullptr ? &next : nullptr, &before, CALLER);
  if (old != nullptr) from_kernel(before, old);
  return 0;
}
decltype(o_sigaction) o_sigaction2;  // __sigaction

using Handler = void (*)(int);
Handler set_handler(int signal, Handler handler, uint64_t flags, uint64_t mask, const void* caller) {
  KernelAction next = {reinterpret_cast<void*>(handler), flags, nullptr, mask}, before = {};
  exchange(signal, &next, &before, caller);
  return reinterpret_cast<Handler>(before.handler);
}

// signal(2) of the C library: BSD's, with the signal itself in the mask and SA_RESTART.
template <int kName>
struct Bsd {
  static Handler (*original)(int, Handler);
  static Handler call(int signal, Handler handler) {
    if (!ours(signal) || handler == SIG_ERR) return original(signal, handler);
    return set_handler(signal, handler, SA_RESTART, signal_bit(signal), CALLER);
  }
};
template <int kName>
Handler (*Bsd<kName>::original)(int, Handler);

// System V's: one shot, not blocked meanwhile.
template <int kName>
struct SystemV {
  static Handler (*original)(int, Handler);
  static Handler call(int signal, Handler handler) {
    if (!ours(signal) || handler == SIG_ERR) return original(signal, handler);
    return set_handler(signal, handler, static_cast<uint32_t>(SA_RESETHAND) | SA_NODEFER, 0, CALLER);
  }
};
template <int kName>
Handler (*SystemV<kName>::original)(int, Handler);

template <int kName>
struct Mask {
  static int (*original)(int, const sigset_t*, sigset_t*);
  static int call(int how, const sigset_t* set, sigset_t* old) {
    if (g_recording.load(std::memory_order_relaxed) == RecordingState::kOff) return original(how, set, old);
    const uint64_t hidden_before = t_hidden_mask;
    uint64_t hidden = hidden_before;
    sigset_t changed;
    if (set != nullptr) {
      changed = *set;
      uint64_t word;
      memcpy(&word, set, sizeof(word));
      uint64_t guarded = word & kGuardedSignals;
      if (how == SIG_BLOCK) hidden |= guarded;
      if (how == SIG_UNBLOCK) hidden &= ~guarded;
      if (how == SIG_SETMASK) hidden = guarded;
      if (how != SIG_UNBLOCK) word &= ~kGuardedSignals;
      memcpy(&changed, &word, sizeof(word));
    }
    int result = original(how, set != nullptr ? &changed : nullptr, old);
    if (result != 0) return result;
    t_hidden_mask = hidden;
    if (old != nullptr) {
      uint64_t word;
      memcpy(&word, old, sizeof(word));
      word |= hidden_before;
      memcpy(old, &word, sizeof(word));
    }
    return 0;
  }
};
template <int kName>
int (*Mask<kName>::original)(int, const sigset_t*, sigset_t*);

template <typename F>
LibraryHook hook(const char* name, F* replacement, F** original) {
  return {name, reinterpret_cast<void*>(replacement), reinterpret_cast<void**>(original)};
}

}  // namespace

bool add_signal_hooks(uint64_t libjvm_low, uint64_t libjvm_high) {
  g_libjvm_low = libjvm_low;
  g_libjvm_high = libjvm_high;
  const LibraryHook masks[] = {
      hook("pthread_sigmask", Mask<0>::call, &Mask<0>::original),
      hook("sigprocmask", Mask<1>::call, &Mask<1>::original),
  };
  if (!add_library_hooks(masks, 2)) return false;
  if (dlsym(RTLD_DEFAULT, "JVM_get_signal_action") != nullptr) return true;  // libjsig
  const LibraryHook actions[] = {
      hook("sigaction", h_sigaction, &o_sigaction),
      hook("__sigaction", h_sigaction, &o_sigaction2),
      hook("signal", Bsd<0>::call, &Bsd<0>::original),
      hook("bsd_signal", Bsd<1>::call, &Bsd<1>::original),
      hook("ssignal", Bsd<2>::call, &Bsd<2>::original),
      hook("sysv_signal", SystemV<0>::call, &SystemV<0>::original),
      hook("__sysv_signal", SystemV<1>::call, &SystemV<1>::original),
  };
  return add_library_hooks(actions, sizeof(actions) / sizeof(actions[0]));
}

void watch_signals() {
  FaultHandler::Replaced replaced = FaultHandler::retake();
  if (replaced.signal != 0) {
    say(replaced.signal, reinterpret_cast<uint64_t>(replaced.handler), "was found in front of ours");
  }
  if (int signal = g_taken_in_signal.exchange(0, std::memory_order_acquire)) {
    say(signal, g_taken_in_handler.load(std::memory_order_relaxed), "has been installed");
  }
}

}  // namespace classaccess
