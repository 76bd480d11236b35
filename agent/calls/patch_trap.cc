#include "agent/calls/patch_trap.h"

#include <errno.h>
#include <ucontext.h>

#include "agent/base/queue_signal.h"
#include "agent/base/thread_offset.h"
#include "agent/calls/native_hooks.h"
#include "agent/fault/signal_frames.h"

namespace classaccess {
namespace {

constexpr uint32_t kRows = 1u << 17;
std::atomic<uint32_t> g_by_patch[kRows];
std::atomic<Answer> g_answers[kAnswers];

uint32_t row_of(uint64_t patch) { return static_cast<uint32_t>(patch * 0x9e3779b97f4a7c15ull >> 47); }

// Where a thread goes on that stands at `pc`; 0: it may stay.
uint64_t place_in_copy(uint64_t pc) {
  for (uint64_t i = 1; i < kJumpBytes; ++i) {
    const NativeHook* hook = find_hook(pc - i);
    if (hook != nullptr && hook->inner[i] != 0) return hook->body + hook->inner[i];
  }
  return 0;
}

}  // namespace

NativeHook* find_hook(uint64_t patch) {
  for (uint32_t at = row_of(patch);; at = (at + 1) % kRows) {
    uint32_t id = g_by_patch[at].load(std::memory_order_acquire);
    if (id == 0) return nullptr;
    NativeHook& hook = g_native_hooks.row(id);
    if (hook.patch == patch) return &hook;
  }
}

void publish_hook(uint32_t id) {
  uint32_t at = row_of(g_native_hooks.row(id).patch);
  while (g_by_patch[at].load(std::memory_order_relaxed) != 0) at = (at + 1) % kRows;
  g_by_patch[at].store(id, std::memory_order_release);
}

bool has_hook_within(uint64_t low, uint64_t high) {
  for (uint64_t patch = low - kJumpBytes + 1; patch < high; ++patch) {
    const NativeHook* hook = find_hook(patch);
    if (hook != nullptr && hook->reserved.load(std::memory_order_acquire)) return true;
  }
  return false;
}

bool is_inside_entry(uint64_t pc) { return place_in_copy(pc) != 0; }

bool ask_where(uint32_t slot, int32_t tid) {
  g_answers[slot].store(Answer::kAsked, std::memory_order_release);
  const long error = queue_signal(tid, SIGBUS, &g_answers[slot]);
  if (error != 0) g_answers[slot].store(Answer::kNotYet, std::memory_order_release);
  return error == 0 || error == -EAGAIN;
}

Answer answer_of(uint32_t slot) { return g_answers[slot].load(std::memory_order_acquire); }

bool patch_asked(siginfo_t* info, void* context) {
  if (info->si_code != SI_QUEUE) return false;
  auto* slot = static_cast<std::atomic<Answer>*>(info->si_value.sival_ptr);
  if (slot < g_answers || slot >= g_answers + kAnswers) return false;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (uint64_t copy = place_in_copy(static_cast<uint64_t>(registers[REG_RIP]))) {
    registers[REG_RIP] = static_cast<greg_t>(copy);
  }
  const bool behind = handler_goes_back_to(static_cast<uint64_t>(registers[REG_RSP]), fs_base(), is_inside_entry);
  slot->store(behind ? Answer::kNotYet : Answer::kOutside, std::memory_order_release);
  return true;
}

bool patch_trap(siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const NativeHook* hook = find_hook(static_cast<uint64_t>(registers[REG_RIP]) - 1);
  if (info->si_code != SI_KERNEL || hook == nullptr) return false;  // not an int3, or another's
  registers[REG_RIP] = static_cast<greg_t>(hook->body);
  return true;
}

}  // namespace classaccess
