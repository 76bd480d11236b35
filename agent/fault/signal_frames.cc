#include "agent/fault/signal_frames.h"

#include <ucontext.h>

#include <cstddef>

#include "agent/base/safe_load.h"

namespace classaccess {
namespace {

// Where no FS base tells the end: a stack is longer only with ulimit -s raised.
constexpr uint64_t kLongest = 8 << 20;
constexpr uint64_t kLongestOfThread = 1ull << 30;

constexpr uint64_t kContext = 8;  // behind the return address
constexpr uint64_t gregs_at(int reg) {
  return kContext + offsetof(ucontext_t, uc_mcontext) + 8u * static_cast<unsigned>(reg);
}
constexpr uint64_t kLink = kContext + offsetof(ucontext_t, uc_link);
constexpr uint64_t kFpstate = kContext + offsetof(ucontext_t, uc_mcontext.fpregs);
constexpr uint64_t kMaxFlags = 7;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
constexpr uint64_t kUserCode = 0x33;

struct Frame {
  uint64_t sp = 0, pc = 0;  // where it goes back to
  FrameMark mark = FrameMark::kOthers;
};

bool frame_at(uint64_t at, Frame* frame) {
  uint64_t flags, link, segments, fpstate;
  if (!safe_load(at + kContext, &flags) || flags == 0 || flags > kMaxFlags) return false;
  if (!safe_load(at + kLink, &link)) return false;
  frame->mark = static_cast<FrameMark>(link);
  if (frame->mark != FrameMark::kOthers && frame->mark != FrameMark::kInside && frame->mark != FrameMark::kLeft) {
    return false;
  }
  if (!safe_load(at + gregs_at(REG_CSGSFS), &segments) || (segments & 0xffff) != kUserCode) return false;
  if (!safe_load(at + kFpstate, &fpstate) || fpstate <= at || fpstate - at > (64u << 10)) return false;
  return safe_load(at + gregs_at(REG_RSP), &frame->sp) && safe_load(at + gregs_at(REG_RIP), &frame->pc);
}

}  // namespace

bool handler_goes_back_to(uint64_t sp, uint64_t fs_base, bool (*ours)(uint64_t pc)) {
  // From stack to stack: a handler may run on an alternate one.
  constexpr int kMaxStacks = 8;
  for (int i = 0; i < kMaxStacks && sp != 0; ++i) {
    const bool of_thread = fs_base > sp && fs_base - sp < kLongestOfThread;
    const uint64_t end = of_thread ? fs_base : sp + kLongest;
    uint64_t next = 0, last = 0;
    // From 8 bytes below it: a handler that has just returned has popped the frame's first word.
    uint64_t at = ((sp + 15) & ~15ull) - kContext;
    for (uint64_t flags; at < end && safe_load(at + kContext, &flags); at += 16) {
      Frame frame;
      if (flags > kMaxFlags || !frame_at(at, &frame)) continue;
      if (frame.mark == FrameMark::kInside || (frame.mark == FrameMark::kOthers && ours(frame.pc))) return true;
      next = frame.sp;
      last = at;
    }
    // The outermost frame found goes back to this stack, or to another.
    if (next >= last && next < at) return false;
    sp = next;
  }
  return false;
}

}  // namespace classaccess
