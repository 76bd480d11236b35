// Signal handlers that have not returned yet, seen on their thread's stack: the frames that the
// kernel put there say where each of them goes back to.
//
// Frames of SIGSEGV, SIGBUS and SIGTRAP do not count: there our handlers are in front, and know
// themselves whether they are under way; what they leave on the stack looks like a frame for long.
// Source: struct rt_sigframe (arch/x86/include/asm/sigframe.h): return address, ucontext,
// siginfo; the ucontext aligned to 16 bytes.
// Context: signal handler, of its own thread; any thread, of one that waits.
#pragma once

#include <cstdint>

namespace classaccess {

// Whether one of them goes back to code that is `ours`. `sp`: the thread's stack pointer;
// `fs_base`: its own if known (a thread's stack ends below it), else 0.
bool handler_goes_back_to(uint64_t sp, uint64_t fs_base, bool (*ours)(uint64_t pc));

}  // namespace classaccess
