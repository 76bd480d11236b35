// The single step of an instruction that neither a copy nor the emulator can do: with the trap
// flag set it runs itself, its pages open to this thread; SIGTRAP ends it.
// Context: signal handler, of its own thread.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace classaccess {

constexpr uint64_t kTrapFlag = 0x100;

// The one in flight on this thread (pc 0: none); its pages are in t_step_pages.
struct Step {
  uint64_t pc = 0;
  uint64_t signal_mask = 0;  // of the interrupted context
};
extern __thread Step t_step __attribute__((tls_model("initial-exec")));

// The kernel's sigset_t of a frame: its first 8 bytes.
inline uint64_t& kernel_mask(ucontext_t* uc) { return *reinterpret_cast<uint64_t*>(&uc->uc_sigmask); }

// The frame steps the instruction at `pc`, which touches `address`.
void begin_step(uint64_t pc, uint64_t address, ucontext_t* uc);
// It needs one more page.
void open_for_step(uint64_t address);
// The frame goes on as before it.
void end_step(ucontext_t* uc);

}  // namespace classaccess
