// The end of a recording while the program goes on: when has every thread left our code?
//
// After the pages are open and the patches taken back no thread comes to us any more, but some
// are still on the way: between a fault and its signal, in the handler, in a displaced copy, a
// probe or a single step. Each of them is asked by a queued SIGTRAP, whose handler sees where
// it stands. A thread that waits in a system call need not be asked (it would meet EINTR): not
// in ours, and not in that of a handler which has interrupted our code, it has left it.
// Context: ask, state: the control thread. settle_slot: signal handler.
#pragma once

#include <atomic>
#include <cstdint>

namespace classaccess {

enum class Settled : uint32_t {
  kUnasked = 0,
  kAsked,   // no answer yet
  kYes,     // it has left for good
  kNotYet,  // ask again
};

constexpr uint32_t kSettleSlots = 4096;

// False: the thread is gone.
bool ask_to_settle(uint32_t slot, int32_t tid);
Settled settled(uint32_t slot);

// The slot that a siginfo's value names, or null: not such a request.
std::atomic<Settled>* settle_slot(const void* value);

}  // namespace classaccess
