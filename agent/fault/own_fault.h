// A fault of our own code that nothing recovers: the JVM is about to end by it, and its report names only a library.
// One line says that it is ours and which build; the database keeps what was committed (WAL).
//
// Context: signal handler, before the signal is passed on.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace classaccess {

// In this library's text, from its header to the end of its code.
bool in_own_text(uint64_t pc);

// Once in a process; nothing unless the PC is in our text. A guard page of the thread's own stack is no fault of ours:
// HotSpot opens it for native code and goes on.
void name_own_fault(int signal, const siginfo_t* info, const ucontext_t* uc);

}  // namespace classaccess
