#include "agent/calls/native/native_cost.h"

#include <algorithm>
#include <vector>

#include "agent/calls/call_sink.h"
#include "agent/calls/native/make_hook.h"
#include "agent/calls/native/patch_round.h"
#include "agent/calls/native_hooks.h"

extern "C" void classaccess_measured();
asm(R"(
  .text
  .p2align 6
  .hidden classaccess_measured
  .globl classaccess_measured
  .type classaccess_measured,@function
classaccess_measured:
  nopl 0(%rax, %rax)
  ret
  .size classaccess_measured, .-classaccess_measured
  .p2align 4
)");

namespace classaccess {
namespace {

constexpr int kRounds = 30, kCalls = 1000;

// Ticks that one call takes, the best of many rounds: interrupts only add.
uint64_t ticks_for_all() {
  uint64_t start = call_ticks();
  for (int i = 0; i < kCalls; ++i) classaccess_measured();
  return call_ticks() - start;
}

}  // namespace

void measure_native_cost() {
  static bool done = false;
  if (done) return;
  done = true;
  const auto entry = reinterpret_cast<uint64_t>(&classaccess_measured);
  FunctionCode code;
  code.entry = entry;
  code.size = 6;
  code.limit = entry + 16;
  uint32_t id = 0;
  if (!make_hook(entry, entry + 16, code, &id).empty()) return;
  NativeHook& hook = g_native_hooks.row(id);
  hook.kind = HookKind::kTimed;
  hook.function = 0;
  uint64_t plain = UINT64_MAX, hooked = UINT64_MAX, inside = UINT64_MAX;
  for (int i = 0; i < kRounds; ++i) plain = std::min(plain, ticks_for_all());
  std::vector<std::string> why;
  put_hooks_in({&hook}, &why);
  CallThread* thread = call_thread();
  if (!why[0].empty() || thread == nullptr) return;
  const bool on = g_calls_on.exchange(true), rows = g_call_rows.exchange(false);
  const bool contexts = g_call_contexts_wanted.exchange(false);
  for (int i = 0; i < kRounds; ++i) {
    const CallStat* stat = thread->stat(0);
    const uint64_t before = stat != nullptr ? stat->total : 0;
    hooked = std::min(hooked, ticks_for_all());
    stat = thread->stat(0);
    if (stat != nullptr) inside = std::min(inside, stat->total - before);
  }
  g_calls_on = on;
  g_call_rows = rows;
  g_call_contexts_wanted = contexts;
  take_hooks_out({&hook});
  if (inside == UINT64_MAX || hooked < plain) return;
  // The function itself takes part of what is measured: as much as without a hook.
  g_native_call_cost.inside = (inside > plain ? inside - plain : 0) / kCalls;
  g_native_call_cost.whole = (hooked - plain) / kCalls;
}

}  // namespace classaccess
