// What our handlers know of the thread that they run on: its state in the recording, made at its
// first trap, and whether another of our handlers is under way beneath.
// Context: signal handler and callbacks, of its own thread.
#pragma once

#include <cstdint>

#include "agent/base/counters.h"
#include "agent/fault/access_path.h"
#include "agent/fault/signal_frames.h"
#include "agent/fault/thread_state.h"

namespace classaccess {

extern AccessPath* g_fault_access;  // FaultHandler::start's

// Null: none yet. Of the recording whose number the thread has: after renew().
extern __thread ThreadState* t_state __attribute__((tls_model("initial-exec")));
// ThreadEnd has retired this thread's state: what it still does is not recorded.
extern __thread bool t_retired __attribute__((tls_model("initial-exec")));
void renew();

inline bool recording() { return g_recording.load(std::memory_order_relaxed) == RecordingState::kOn; }

// The thread whose access is to be recorded; nullptr for one that is let pass.
ThreadState* recorded_thread();

// Nesting of our handlers on this thread. Left before another's is called: that one need not
// come back.
extern __thread uint32_t t_inside __attribute__((tls_model("initial-exec")));
class Inside {
 public:
  // `frame`: the kernel's for this handler; null: another handler has called ours.
  explicit Inside(ucontext_t* frame) : frame_(frame) {
    ++t_inside;
    mark(FrameMark::kInside);
  }
  ~Inside() { leave(FrameMark::kLeft); }
  void leave_to_another() { leave(FrameMark::kOthers); }

 private:
  void mark(FrameMark mark) {
    if (frame_ != nullptr) mark_frame(frame_, mark);
  }
  void leave(FrameMark as) {
    if (!inside_) return;
    inside_ = false;
    mark(as);
    --t_inside;
  }

  ucontext_t* frame_;
  bool inside_ = true;
};

// sival_ptr of arm_other_thread
constexpr uint64_t kArmRequest = 0x636c61636cull;

}  // namespace classaccess
