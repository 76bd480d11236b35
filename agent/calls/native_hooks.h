// The hooked native functions, and what happens when one is entered and left.
//
// The entry (behind an ENDBR64) is a jump to the function's stub, near by:
//
//   stub:    push id; call [classaccess_native_entry]       saves registers, native_entered
//            lea rsp, [rsp+16]; jmp [return trampoline]     timed
//   untimed: lea rsp, [rsp+8]
//   body:    the instructions that were at the entry, relocated; jmp behind them
//
// A return trampoline (there are many, so that each call in one predicts its target) calls
// `body`: the return address it pushes takes the place of the program's, which is kept in the
// shadow (shadow_memory.h), and every CALL still has its RET. When the function returns, the
// trampoline puts the program's address back and returns there.
//
// Unwinders see a frame of ours, whose CFI leads to the caller; its personality notes calls that
// end by an exception.
// Context: entered, left, unwound: any thread, also a signal handler. The table: one normal
// thread at a time; rows are never freed.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"

namespace classaccess {

enum class HookKind : uint8_t { kTimed, kLongjmp };

struct NativeHook {
  static constexpr int kMaxPrologue = 32;
  uint64_t entry = 0;  // of the function
  uint64_t patch = 0;  // where the jump is: behind ENDBR64
  uint64_t stub = 0, untimed = 0, body = 0;
  uint32_t function = 0;  // g_call_functions; set anew by each recording
  HookKind kind = HookKind::kTimed;
  uint8_t moved = 0;                    // bytes that run relocated, from `patch`
  uint8_t original[kMaxPrologue] = {};  // `moved` bytes
  uint8_t jump[5] = {};
  // Of an instruction that began at patch + i, i from 1 to 4: its offset in `body`; 0: none did.
  uint8_t inner[5] = {};
  std::atomic<bool> in_force{false};
  std::atomic<bool> reserved{false};  // its bytes are ours or about to be: no probe is laid there
};
constexpr uint32_t kMaxNativeHooks = 1u << 16;
extern AppendTable<NativeHook> g_native_hooks;
constexpr int kJumpBytes = 5;
// By `patch`; null: there is none. Any context.
NativeHook* find_hook(uint64_t patch);
// The row is complete. One normal thread at a time.
void publish_hook(uint32_t id);

// Whether some hook's bytes lie in [low, high). Any context.
bool has_hook_within(uint64_t low, uint64_t high);

struct EntryFrame;

// Return addresses in the code cache. HotSpot reads them off the stack (deoptimisation, stack walks where the frame
// anchor has no pc), but for calls out of native code: a native wrapper, the interpreter's native entry and a
// foreign function's stub leave the thread in native state with an anchor that has its own pc.
// Source: cpu/x86/sharedRuntime_x86_64.cpp (generate_native_wrapper), templateInterpreterGenerator_x86.cpp
// (generate_native_entry), share/runtime/javaFrameAnchor.hpp.
struct CodeCacheRule {
  std::atomic<uint64_t> low{0}, high{0};                    // empty: there is no code cache
  uint32_t thread_state = 0, anchor_sp = 0, anchor_pc = 0;  // offsets in JavaThread, which is in r15
  int32_t in_native = 0;                                    // JavaThreadState
  bool may_replace(const EntryFrame& frame) const;
};
extern CodeCacheRule g_code_cache_rule;

// The registers at a function's entry, as native_entry_stubs.cc pushes them.
struct EntryFrame {
  uint64_t r15, r14, r13, r12, rbp, rbx;  // only for the slow half
  uint64_t flags;
  uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax;
  uint64_t resume;  // in the stub: timed; set to NativeHook::untimed if it is not
  uint64_t id;      // of the hook; replaced by NativeHook::body where the trampoline looks for it
  uint64_t return_address;
};

// Whether the call before the frame's return address went to hook.entry. `return_address`: the
// program's, whatever lies in the slot now. `all`: the callee-saved registers are there too.
enum class CallCheck : uint8_t { kYes, kNo, kAskSlowly };
CallCheck check_call(const NativeHook& hook, const EntryFrame& frame, uint64_t return_address, bool all);
// What it remembers of the code of libraries is void: some were unloaded.
void forget_call_sites();

// The trampolines.
bool is_return_trampoline(uint64_t address);
uint64_t return_trampoline(uint32_t hook);
uint64_t native_entry_address();

}  // namespace classaccess
