// Unwinders and debuggers see through hooked calls.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <set>
#include <thread>

#include "agent/calls/native_hooks.h"
#include "tests/calls/called_library.h"
#include "tests/calls/hooks.h"

namespace classaccess {
namespace {

constexpr char kAll[] = "libcalled_library.so!*";

// Single steps of this thread, each looked at from its signal handler.
struct Steps {
  uint64_t count = 0, in_stubs = 0;
  uint64_t caller = 0;           // a frame that must be seen: where the call of the hooked function returns to
  std::set<uint64_t> cut_short;  // where an unwinder did not see it
};
Steps g_steps;

_Unwind_Reason_Code look(_Unwind_Context* context, void* found) {
  if (_Unwind_GetIP(context) - g_steps.caller < 64) *static_cast<bool*>(found) = true;
  return _URC_NO_REASON;
}

bool in_stub(uint64_t pc) {
  for (uint32_t i = 1; i < g_native_hooks.end(); ++i) {
    const NativeHook& hook = g_native_hooks.row(i);
    if (pc >= hook.stub && pc < hook.body + 160) return true;
  }
  return false;
}

void on_step(int, siginfo_t*, void* context) {
  const auto pc = static_cast<uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  ++g_steps.count;
  if (in_stub(pc)) {
    ++g_steps.in_stubs;
    return;
  }
  bool found = false;
  _Unwind_Backtrace(look, &found);
  if (!found) g_steps.cut_short.insert(pc);
}

__attribute__((noinline)) void step_through(long (*function)(int)) {
  asm volatile("pushf; orq $0x100, (%%rsp); popf" ::: "memory", "cc");
  function(0);
  asm volatile("pushf; andq $~0x100, (%%rsp); popf" ::: "memory", "cc");
}

// A profiler's signal may come at any instruction.
TEST(NativeCalls, UnwindersSeeTheCallerAtEveryInstruction) {
  Hooks hooks({kAll});
  ASSERT_EQ(hooks.error(), "");
  struct sigaction step = {}, before;
  step.sa_sigaction = on_step;
  step.sa_flags = SA_SIGINFO;
  void* first[1];
  backtrace(first, 1);  // loads the unwinder
  ASSERT_EQ(sigaction(SIGTRAP, &step, &before), 0);
  g_steps = Steps();
  g_steps.caller = reinterpret_cast<uint64_t>(&step_through);
  forget_call_sites();
  for (int i = 0; i < 3; ++i) step_through(called_recursion);  // the slow half of the entry, then the fast one
  sigaction(SIGTRAP, &before, nullptr);
  EXPECT_GE(hooks.of("called_recursion").count, 3u);
  EXPECT_GT(g_steps.count, 300u);
  // The stub and the moved instructions lie in memory of no library (agent/doc/limits.md).
  EXPECT_GT(g_steps.in_stubs, 0u);
  EXPECT_LE(g_steps.in_stubs, 3u * 8);
  std::string where;
  for (uint64_t pc : g_steps.cut_short) {
    char text[64];
    snprintf(text, sizeof(text), "%#lx ", pc);
    where += text;
  }
  EXPECT_EQ(g_steps.cut_short.size(), 0u)
      << where << "trampolines at " << std::hex << return_trampoline(0) << ", entry at " << native_entry_address();
}

// A thread inside of a hooked function, until it is told.
std::atomic<bool> g_waits{false}, g_go_on{false};
int wait_inside(int value) {
  g_waits = true;
  while (!g_go_on) usleep(1000);
  return value;
}
__attribute__((noinline)) void call_what_waits() {
  EXPECT_EQ(called_by_pointer(wait_inside, 4), 5);
  asm volatile("");
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof(part), pipe)) > 0;) out.append(part, n);
  pclose(pipe);
  return out;
}

TEST(NativeCalls, GdbSeesTheCallersOfAHookedCall) {
  if (access("/usr/bin/gdb", X_OK) != 0) GTEST_SKIP() << "gdb is not installed";
  g_waits = g_go_on = false;
  Hooks hooks({kAll});
  ASSERT_EQ(hooks.error(), "");
  std::thread thread(call_what_waits);
  while (!g_waits) usleep(1000);
  const std::string out = output_of("/usr/bin/gdb -nx -batch -iex 'set auto-load off' -ex 'thread apply all bt' -p " +
                                    std::to_string(getpid()) + " 2>&1 </dev/null");
  g_go_on = true;
  thread.join();
  if (out.find("ptrace") != std::string::npos && out.find("wait_inside") == std::string::npos) {
    GTEST_SKIP() << "ptrace is refused here: " << out;
  }
  // From the inside to the thread's first function, without an error on the way.
  size_t at = 0;
  for (const char* frame :
       {"wait_inside", "called_by_pointer", "classaccess_return_trampolines", "call_what_waits", "start_thread"}) {
    const size_t found = out.find(frame, at);
    ASSERT_NE(found, std::string::npos) << frame << " in\n" << out;
    at = found;
  }
  EXPECT_EQ(out.find("Backtrace stopped"), std::string::npos) << out;
  EXPECT_EQ(hooks.of("called_by_pointer").by_ended[0], 1u);
}

}  // namespace
}  // namespace classaccess
