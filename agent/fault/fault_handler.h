// The fault handler: the first to see SIGSEGV, SIGBUS and SIGTRAP.
//
// Its questions, in order: one of our own safe loads? one of our displaced copies? a
// closed heap page? If none, the signal goes to whoever had it before, unchanged. An
// access to a closed page is resolved, recorded, performed on the twin view, and its
// instruction skipped (access_path.h).
// Context: start, stop, arm_*: JVMTI callbacks; the handlers themselves: any thread.
#pragma once

#include <cstdint>

#include "agent/fault/access_path.h"
#include "agent/fault/signal_chain.h"
#include "agent/fault/thread_state.h"

namespace classaccess {

class FaultHandler {
 public:
  // Installs the handlers and proves with a fault on a page of our own that they are
  // reached and can change the thread's right in the frame. Empty string, or the
  // reason. `access` outlives the process's handlers.
  static const char* start(AccessPath* access);
  // Puts the previous handlers back. Only when no thread is armed any more.
  static void stop();
  // False if somebody else has replaced our SIGSEGV handler.
  static bool in_front();

  // Writer's tick: ours in front again if somebody else has replaced one, theirs chained.
  // The last one found, signal 0 if none.
  struct Replaced {
    int signal = 0;
    void* handler = nullptr;
  };
  static Replaced retake();
  // What is behind our handler of `signal`; nullptr for a signal that is not ours.
  static SignalChain* chain_of(int signal);

  // The current thread may trap from now on: a fault with its signal blocked would kill
  // the process. Its program goes on to believe that they are blocked.
  static void unblock_signals();

  // State of the current thread, made if need be. nullptr if the pool is full, if it is
  // no JavaThread, or (unless a JVMTI event has `announced` it) one of the VM's own kinds.
  static ThreadState* adopt_this_thread(bool announced = false);
  static ThreadState* this_thread();

  // The current thread has allocated objects while it was not watched: marks those of
  // its TLAB. Before it is armed.
  static void note_own_tlab();
  // ThreadEnd: nothing the thread does from here on is recorded.
  static void retire_this_thread();

  // Asks another thread to arm itself, by a queued SIGTRAP. False if it is gone.
  static bool arm_other_thread(int32_t tid);

  // Code that a thread must have left before the recording's memory is given back: this
  // library's, the displaced copies, the probes. While started.
  static bool is_agent_code(uint64_t pc);

  // The recording is over and every thread has settled (settle.h): what threads know of it is
  // void. Before another recording.
  static void forget_threads();
};

}  // namespace classaccess
