#include "tests/calls/hooks.h"

#include <signal.h>
#include <ucontext.h>

#include "agent/base/safe_load.h"
#include "agent/calls/native/native_calls.h"
#include "agent/calls/patch_trap.h"

namespace classaccess {
namespace {

void on_trap(int, siginfo_t* info, void* context) {
  if (!patch_trap(info, context)) signal(SIGTRAP, SIG_DFL);
}

void on_bus(int, siginfo_t* info, void* context) {
  if (!patch_asked(info, context)) signal(SIGBUS, SIG_DFL);
}

// Loads that may fault, of those who look at other threads' stacks.
void on_fault(int, siginfo_t*, void* context) {
  auto& pc = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const uint64_t resume = safe_load_recover(static_cast<uint64_t>(pc));
  if (resume == 0) {
    signal(SIGSEGV, SIG_DFL);
  } else {
    pc = static_cast<greg_t>(resume);
  }
}

}  // namespace

Hooks::Hooks(const std::vector<std::string>& patterns) {
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigaction(SIGTRAP, &action, nullptr);
  action.sa_sigaction = on_bus;
  sigaction(SIGBUS, &action, nullptr);
  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, nullptr);
  if (!start_call_sink()) {
    error_ = "no memory";
    return;
  }
  reset_call_sink();
  g_call_rows = false;
  error_ = start_native_calls(patterns);
  on_ = error_.empty();
  g_calls_on = on_;
}

void Hooks::stop() {
  if (!on_) return;
  on_ = false;
  stop_native_calls();
  g_calls_on = false;
}

std::map<std::string, FunctionTotals> Hooks::all() const {
  std::map<std::string, FunctionTotals> out;
  for (uint32_t id = g_first_call_function; id < g_call_functions.end(); ++id) {
    const CallFunction& function = g_call_functions.row(id);
    FunctionTotals& totals = out[function.name];
    totals.found = true;
    if (const char* refused = function.refused) totals.refused = refused;
    for_each_call_thread([&](const CallThread& thread) {
      const CallStat* stat = thread.stat(id);
      if (stat == nullptr) return;
      if (stat->count != 0 && (totals.count == 0 || stat->min < totals.min)) totals.min = stat->min;
      totals.count += stat->count;
      totals.untimed += stat->untimed;
      totals.total += stat->total;
      totals.self += stat->self;
      totals.max = std::max(totals.max, stat->max);
      for (int i = 0; i < 3; ++i) totals.by_ended[i] += stat->by_ended[i];
    });
  }
  return out;
}

FunctionTotals Hooks::of(const std::string& name) const { return all()[name]; }

uint64_t Hooks::under_way() {
  uint64_t entered = 0, left = 0;
  for_each_call_thread([&](const CallThread& thread) {
    entered += thread.entered;
    left += thread.left;
  });
  return entered - left;
}

std::vector<CallRecord> Hooks::take_rows() const {
  std::vector<CallRecord> rows;
  for_each_call_thread(
      [&](CallThread& thread) { thread.ring->drain([&](const CallRecord& r) { rows.push_back(r); }); });
  return rows;
}

}  // namespace classaccess
