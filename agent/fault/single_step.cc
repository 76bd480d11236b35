#include "agent/fault/single_step.h"

#include <signal.h>

#include "agent/fault/own_thread.h"
#include "agent/fault/page_windows.h"
#include "agent/fault/signal_chain.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {

__thread Step t_step __attribute__((tls_model("initial-exec")));

namespace {

constexpr uint64_t kAsynchronous =
    ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) | signal_bit(SIGILL) | signal_bit(SIGTRAP));

}  // namespace

void open_for_step(uint64_t address) {
  if (!g_gate.per_thread()) t_step_pages.open(address);
}

void begin_step(uint64_t pc, uint64_t address, ucontext_t* uc) {
  t_step.pc = pc;
  t_step_pages.close_all();  // of a step that never ended
  // A handler of the program's must not come between and start a step of its own.
  t_step.signal_mask = kernel_mask(uc);
  kernel_mask(uc) |= kAsynchronous;
  uc->uc_mcontext.gregs[REG_EFL] |= static_cast<greg_t>(kTrapFlag);
  g_gate.pass_in_frame(uc);
  open_for_step(address);
}

void end_step(ucontext_t* uc) {
  t_step.pc = 0;
  kernel_mask(uc) = t_step.signal_mask;
  uc->uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
  t_step_pages.close_all();
  ThreadState* thread = t_state;
  if (recording() && thread != nullptr && thread->choice.load(std::memory_order_relaxed) != ThreadChoice::kExcluded) {
    g_gate.stop_in_frame(uc);
  }
}

}  // namespace classaccess
