// What a hooked function's entry and return do.
#include <string.h>
#include <unwind.h>

#include "agent/base/safe_load.h"
#include "agent/calls/call_core.h"
#include "agent/calls/native_hooks.h"
#include "agent/calls/shadow_memory.h"

namespace classaccess {

AppendTable<NativeHook> g_native_hooks;
CodeCacheRule g_code_cache_rule;

namespace {

// The chunk of stack whose shadow this thread has used last.
__thread uint64_t t_shadow_chunk __attribute__((tls_model("initial-exec")));

inline bool has_shadow(uint64_t slot) { return slot / kShadowChunk == t_shadow_chunk; }

bool find_shadow(uint64_t slot) {
  if (has_shadow(slot)) return true;
  if (!map_shadow(slot)) return false;
  t_shadow_chunk = slot / kShadowChunk;
  return true;
}

// An enter or leave that a signal handler has left by a jump never ends. Its stack is ours again
// if we stand above it; a handler stands below what it has interrupted, or on another stack.
constexpr uint64_t kNearby = 256 << 10;
bool is_left_behind(uint64_t busy, uint64_t slot) { return busy < slot && slot - busy < kNearby; }

// The frame's call is over though it never came back: its slot has other contents.
bool is_overwritten(const CallFrame& frame) {
  return !is_readable(frame.slot) || !is_return_trampoline(*reinterpret_cast<const uint64_t*>(frame.slot) - 4);
}

// Calls that were left without a return and whose stack is used again.
void end_stale(CallThread* thread, uint64_t slot, uint64_t now) {
  while (thread->depth > 0) {
    const CallFrame& top = thread->frames[thread->depth - 1];
    if (top.slot == 0 || top.slot > slot || (top.slot < slot && !is_overwritten(top))) return;
    pop_call_frame(thread, now, EndedBy::kUnwound, g_native_call_cost);
  }
}

// Ends a call that is not the innermost one: others inside it go on, on other stacks.
void end_in_the_middle(CallThread* thread, uint32_t at, uint64_t now, EndedBy ended_by) {
  CallFrame ended = thread->frames[at];
  uint32_t above = thread->depth - at - 1;
  for (uint32_t i = 0; i < above; ++i) thread->frames[at + i] = thread->frames[at + i + 1];
  // It is last for the moment it takes to end; its parent is the one it had.
  uint32_t depth = thread->depth;
  CallFrame next = thread->frames[at];
  thread->frames[at] = ended;
  thread->depth = at + 1;
  pop_call_frame(thread, now, ended_by, g_native_call_cost);
  thread->frames[at] = next;
  thread->depth = depth - 1;
  uint32_t context = ended.context;
  for (uint32_t i = at; i < thread->depth; ++i) {
    thread->frames[i].context = context;
    if (g_call_contexts_wanted.load(std::memory_order_relaxed)) {
      context = inner_context(context, thread->frames[i].function);
    }
  }
  if (thread->context != context) {
    thread->context = context;
    context_changed(thread);
  }
}

// The call whose return address was in `slot` is over, and so is what overwritten frames were of.
void end_call_at(CallThread* thread, uint64_t slot, uint64_t now, EndedBy ended_by) {
  end_stale(thread, slot - 1, now);
  for (uint32_t at = thread->depth; at > 0; --at) {
    if (thread->frames[at - 1].slot != slot) continue;
    if (at == thread->depth) {
      pop_call_frame(thread, now, ended_by, g_native_call_cost);
    } else {
      end_in_the_middle(thread, at - 1, now, ended_by);
    }
    return;
  }
}

// longjmp: every call with its slot in [low, high) is over.
void end_range(CallThread* thread, uint64_t low, uint64_t high, uint64_t now) {
  for (uint32_t at = thread->depth; at > 0; --at) {
    uint64_t slot = thread->frames[at - 1].slot;
    if (slot < low || slot >= high) continue;
    if (at == thread->depth) {
      pop_call_frame(thread, now, EndedBy::kUnwound, g_native_call_cost);
    } else {
      end_in_the_middle(thread, at - 1, now, EndedBy::kUnwound);
    }
  }
}

void leave_untimed(EntryFrame* frame, const NativeHook& hook) { frame->resume = hook.untimed; }

void count_untimed(CallThread* thread, const NativeHook& hook, std::atomic<uint64_t>* why) {
  if (why != nullptr) why->fetch_add(1, std::memory_order_relaxed);
  if (hook.function == 0) return;
  if (CallStat* stat = call_stat_of(thread, hook.function)) ++stat->untimed;
}

// Glibc's jmp_buf: rsp is its seventh word, XORed with the thread's guard and rotated
// (PTR_MANGLE). False: the guard is elsewhere.
bool stack_of_jump(uint64_t jmp_buf, uint64_t* rsp) {
  if (!is_readable(jmp_buf + 48)) return false;
  uint64_t guard, value = reinterpret_cast<const uint64_t*>(jmp_buf)[6];
  asm("mov %%fs:0x30, %0" : "=r"(guard));
  value = (value >> 17 | value << 47) ^ guard;
  *rsp = value;
  return value >> 47 == 0 && (value & 7) == 0;
}

void jump_away(CallThread* thread, const EntryFrame& frame) {
  const uint64_t here = reinterpret_cast<uint64_t>(&frame);
  uint64_t rsp = 0;
  // Only frames of the stack that it goes up on.
  constexpr uint64_t kLargestStack = 1u << 30;
  if (!stack_of_jump(frame.rdi, &rsp) || rsp < here || rsp - here > kLargestStack) return;
  end_range(thread, here, rsp, call_ticks());
}

// Starts the timing. The return address that the trampoline will find is set already.
void start(CallThread* thread, EntryFrame* frame, const NativeHook& hook, uint64_t slot, uint64_t return_address) {
  CallFrame* call = push_call_frame(thread, hook.function, slot, return_address);
  if (call == nullptr) {
    leave_untimed(frame, hook);
    return count_untimed(thread, hook, nullptr);
  }
  *shadow_of(slot) = return_address;
  frame->id = hook.body;
  call->start = call_ticks();
}

inline bool in_code_cache(uint64_t address) {
  uint64_t low = g_code_cache_rule.low.load(std::memory_order_relaxed);
  return address - low < g_code_cache_rule.high.load(std::memory_order_relaxed) - low;
}

}  // namespace

bool CodeCacheRule::may_replace(const EntryFrame& frame) const {
  constexpr uint64_t kFarthest = 1 << 20;  // the frame that calls, and what it has pushed
  int32_t state = 0;
  uint64_t sp = 0, pc = 0;
  const auto slot = reinterpret_cast<uint64_t>(&frame.return_address);
  return is_readable(frame.r15 + anchor_sp) && safe_load(frame.r15 + thread_state, &state) && state == in_native &&
         safe_load(frame.r15 + anchor_sp, &sp) && safe_load(frame.r15 + anchor_pc, &pc) && pc != 0 && sp > slot &&
         sp - slot < kFarthest;
}

extern "C" {

// 0: done. 1: classaccess_native_entered_slowly, with all registers.
__attribute__((visibility("hidden"), used)) int classaccess_native_entered(EntryFrame* frame) {
  const NativeHook& hook = g_native_hooks.row(static_cast<uint32_t>(frame->id));
  if (!g_calls_on.load(std::memory_order_relaxed)) {
    leave_untimed(frame, hook);
    return 0;
  }
  const auto slot = reinterpret_cast<uint64_t>(&frame->return_address);
  const uint64_t return_address = frame->return_address;
  CallThread* thread = t_call_thread;
  if (thread == nullptr || thread->busy != 0 || hook.kind != HookKind::kTimed || !has_shadow(slot)) return 1;
  if (thread->depth > 0 && thread->frames[thread->depth - 1].slot - 1 < slot) return 1;
  if (in_code_cache(return_address)) return 1;
  if (check_call(hook, *frame, return_address, false) != CallCheck::kYes) return 1;
  CallBusy busy(thread, slot);
  start(thread, frame, hook, slot, return_address);
  return 0;
}

__attribute__((visibility("hidden"), used)) void classaccess_native_entered_slowly(EntryFrame* frame) {
  const NativeHook& hook = g_native_hooks.row(static_cast<uint32_t>(frame->id));
  const auto slot = reinterpret_cast<uint64_t>(&frame->return_address);
  CallThread* thread = call_thread();
  if (thread == nullptr) return leave_untimed(frame, hook);
  if (thread->busy != 0) {
    if (!is_left_behind(thread->busy, slot)) {
      g_call_counters.busy.fetch_add(1, std::memory_order_relaxed);
      return leave_untimed(frame, hook);
    }
    thread->busy = 0;
  }
  CallBusy busy(thread, slot);
  if (hook.kind == HookKind::kLongjmp) {
    jump_away(thread, *frame);
    return leave_untimed(frame, hook);
  }
  const uint64_t return_address = frame->return_address;
  // A tail jump out of a timed function, whose call goes on, finds the trampoline in the slot; after a call it is gone.
  const bool tail = is_return_trampoline(return_address - 4);
  end_stale(thread, tail ? slot - 1 : slot, call_ticks());
  std::atomic<uint64_t>* why = nullptr;
  if (tail) {
    why = &g_call_counters.other_caller;
  } else if (in_code_cache(return_address) && !g_code_cache_rule.may_replace(*frame)) {
    why = &g_call_counters.code_cache;
  } else if (check_call(hook, *frame, return_address, true) != CallCheck::kYes) {
    why = &g_call_counters.other_caller;
  } else if (!find_shadow(slot)) {
    why = &g_call_counters.no_shadow;
  }
  if (why != nullptr) {
    leave_untimed(frame, hook);
    return count_untimed(thread, hook, why);
  }
  start(thread, frame, hook, slot, return_address);
}

// The function whose return address was in `slot` has returned; where to.
__attribute__((visibility("hidden"), used)) uint64_t classaccess_native_left(uint64_t slot) {
  const uint64_t now = call_ticks();
  CallThread* thread = t_call_thread;
  if (thread != nullptr && (thread->busy == 0 || is_left_behind(thread->busy, slot))) {
    CallBusy busy(thread, slot);
    if (thread->depth > 0 && thread->frames[thread->depth - 1].slot == slot) {
      pop_call_frame(thread, now, EndedBy::kReturn, g_native_call_cost);
    } else {
      end_call_at(thread, slot, now, EndedBy::kReturn);
    }
  }
  return *shadow_of(slot);
}

// Called by the unwinder for each hooked call that an exception, pthread_exit or a cancellation leaves.
__attribute__((visibility("hidden"), used)) _Unwind_Reason_Code classaccess_call_personality(
    int version, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context* context) {
  if (version != 1 || (actions & _UA_CLEANUP_PHASE) == 0) return _URC_CONTINUE_UNWIND;
  // In a context the CFA is that of the frame inside: slot + 8.
  const uint64_t slot = _Unwind_GetCFA(context) - 8;
  CallThread* thread = t_call_thread;
  if (thread != nullptr && thread->busy == 0) {
    CallBusy busy(thread, slot);
    bool forced = (actions & _UA_FORCE_UNWIND) != 0;
    end_call_at(thread, slot, call_ticks(), forced ? EndedBy::kUnwound : EndedBy::kException);
  }
  return _URC_CONTINUE_UNWIND;
}
}

}  // namespace classaccess
