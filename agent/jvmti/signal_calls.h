// The program's sigaction, signal, pthread_sigmask and sigprocmask for the signals that are
// ours (SIGSEGV, SIGBUS, SIGTRAP), as if we were not there.
//
// sigaction and signal change what is behind our handler, and tell of what was there:
// ours stays in front, theirs chains to what it would chain to without us, and
// -Xcheck:jni sees HotSpot's own. Blocking is believed and not done: a trap of a thread
// that blocks SIGSEGV would kill the process. Under libjsig sigaction and signal are left
// to it, which does the same for HotSpot's handler.
// What goes round the C library by the system call itself is noticed at the writer's tick
// (FaultHandler::retake) or, if it blocks, at a thread's start only.
// Context: add: VMInit; tick: writer thread; the functions: any thread, also in a signal
// handler.
#pragma once

#include <cstdint>

namespace classaccess {

// Adds the hooks. `libjvm_low`, `libjvm_high`: whose own calls are not spoken of.
bool add_signal_hooks(uint64_t libjvm_low, uint64_t libjvm_high);

// Puts ours back in front where it is not, and says so once for the recording.
void watch_signals();

}  // namespace classaccess
