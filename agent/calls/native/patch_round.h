// Writes the jumps of many hooks at once, or takes them back.
//
//   int3 at every entry; every core serialised
//   every thread has been seen outside of the bytes behind them, or was moved to the copy
//   the jumps' tails; serialised; their first bytes; serialised
//
// Taking back needs no look at threads: nobody stands inside a jump. Text is written through
// /proc/self/mem, so it stays what it is. Threads that wait in a system call are looked at, not asked (EINTR).
// Context: no signal handler; one thread at a time. Needs patch_trap and patch_asked as handlers.
#pragma once

#include <string>
#include <vector>

#include "agent/calls/native_hooks.h"

namespace classaccess {

// Whether text can be written here: "" or why not. Once, before the first round.
std::string prepare_patching();

// Those that could not be patched have in_force false afterwards; `why`, same order, says why.
void put_hooks_in(const std::vector<NativeHook*>& hooks, std::vector<std::string>* why);
// Returns how many could not be restored: other bytes are there.
size_t take_hooks_out(const std::vector<NativeHook*>& hooks);

}  // namespace classaccess
