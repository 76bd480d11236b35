// Threads that meet an entry while it is patched.
//
// An int3 stands there meanwhile: who comes to it goes on in the relocated copy. Who stood inside the first
// bytes, at an instruction that the jump overwrites, is asked by a queued SIGBUS before it is written, and sent to the
// copy too (native/patch_round.h). Not by SIGTRAP: with one pending the kernel drops that of an int3, and the thread
// would go on behind it. Context: patch_trap: handler of SIGTRAP; patch_asked: of SIGBUS; the rest: one normal thread
// at a time.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace classaccess {

// True: it was one of ours, and the context is ready to be resumed.
bool patch_trap(siginfo_t* info, void* context);
bool patch_asked(siginfo_t* info, void* context);

enum class Answer : uint32_t { kUnasked = 0, kAsked, kOutside, kNotYet };
constexpr uint32_t kAnswers = 8192;
// Asks thread `tid` whether it stands in code that is being overwritten. False: it is gone.
bool ask_where(uint32_t slot, int32_t tid);
Answer answer_of(uint32_t slot);
// Whether `pc` is inside the first bytes of a hooked function, behind the first.
bool is_inside_entry(uint64_t pc);

}  // namespace classaccess
