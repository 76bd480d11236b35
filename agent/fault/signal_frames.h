// Signal handlers that have not returned yet, seen on their thread's stack: the frames that the
// kernel put there say where each of them goes back to.
//
// Our own handlers mark theirs, since what they leave on the stack looks like a frame for long:
// in uc_link, which the kernel writes as 0 and never reads. (The signal's number is not to be had:
// a handler without SA_SIGINFO gets no siginfo.)
// Source: struct rt_sigframe (arch/x86/include/asm/sigframe.h): return address, ucontext,
// siginfo; the ucontext aligned to 16 bytes.
// Context: signal handler, of its own thread; any thread, of one that waits.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace classaccess {

enum class FrameMark : uint64_t {
  kOthers = 0,
  kInside = 0x636c617373616331,  // our handler is under way
  kLeft,                         // it has returned, or is about to
};
inline void mark_frame(ucontext_t* uc, FrameMark mark) {
  uc->uc_link = reinterpret_cast<ucontext_t*>(static_cast<uint64_t>(mark));
}

// Whether one of them goes back to code that is `ours`, or is itself ours. `sp`: the thread's stack pointer;
// `fs_base`: its own if known (a thread's stack ends below it), else 0.
bool handler_goes_back_to(uint64_t sp, uint64_t fs_base, bool (*ours)(uint64_t pc));

}  // namespace classaccess
