#include "agent/calls/native/patch_round.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "agent/base/clock.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/wake.h"
#include "agent/calls/patch_trap.h"
#include "agent/fault/signal_frames.h"
#include "agent/probe/code_patch.h"
#include "agent/probe/probe_sites.h"

namespace classaccess {
namespace {

constexpr uint64_t kPatienceNs = 5000000000, kAskAgainNs = 50000000;
constexpr uint8_t kInt3 = 0xcc;

class Text {
 public:
  Text() : fd_(open("/proc/self/mem", O_RDWR | O_CLOEXEC)) {}
  ~Text() {
    if (fd_ >= 0) close(fd_);
  }
  Text(const Text&) = delete;
  bool is_open() const { return fd_ >= 0; }
  bool holds(uint64_t at, const uint8_t* bytes, size_t count) const {
    uint8_t now[NativeHook::kMaxPrologue];
    return pread(fd_, now, count, static_cast<off_t>(at)) == static_cast<ssize_t>(count) &&
           memcmp(now, bytes, count) == 0;
  }
  bool write(uint64_t at, const uint8_t* bytes, size_t count) const {
    return pwrite(fd_, bytes, count, static_cast<off_t>(at)) == static_cast<ssize_t>(count);
  }

 private:
  int fd_;
};

struct Waiting {
  std::string line;
  uint64_t sp = 0, pc = 0;
};

// A thread in a system call; nothing: it runs.
std::optional<Waiting> waits(int32_t tid) {
  Waiting out;
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/syscall");
  std::getline(file, out.line);
  if (out.line.empty() || out.line[0] == 'r' || out.line[0] == '-') return std::nullopt;
  size_t pc = out.line.rfind(' '), sp = pc != std::string::npos && pc > 0 ? out.line.rfind(' ', pc - 1) : pc;
  if (pc == std::string::npos || sp == std::string::npos) return std::nullopt;
  out.pc = strtoull(out.line.c_str() + pc + 1, nullptr, 16);
  out.sp = strtoull(out.line.c_str() + sp + 1, nullptr, 16);
  return out;
}

bool waits_outside(int32_t tid) {
  std::optional<Waiting> before = waits(tid);
  if (!before || is_inside_entry(before->pc) || handler_goes_back_to(before->sp, 0, is_inside_entry)) return false;
  std::optional<Waiting> after = waits(tid);
  return after && after->line == before->line;
}

// Every thread has been seen outside of the entries' inner bytes since the int3s stand.
bool all_are_outside() {
  struct Thread {
    std::optional<uint32_t> slot;
    uint64_t asked_ns = 0;
    bool done = false;
  };
  std::map<int32_t, Thread> threads;
  const auto own = static_cast<int32_t>(raw_syscall(SYS_gettid));
  uint32_t slots = 0;
  for (const uint64_t give_up = monotonic_ns() + kPatienceNs;;) {
    bool all = true;
    std::error_code ec;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ec)) {
      const int32_t tid = atoi(task.path().filename().c_str());
      Thread& thread = threads[tid];
      if (tid == own || thread.done) continue;
      Answer answer = thread.slot ? answer_of(*thread.slot) : Answer::kNotYet;
      // The signal is lost if another SIGBUS was pending.
      if (answer == Answer::kAsked && monotonic_ns() - thread.asked_ns > kAskAgainNs) answer = Answer::kNotYet;
      if (answer == Answer::kNotYet) {
        thread.done = waits_outside(tid);
        if (!thread.done && !thread.slot && slots < kAnswers) thread.slot = slots++;
        if (!thread.done && thread.slot) {
          thread.asked_ns = monotonic_ns();
          thread.done = !ask_where(*thread.slot, tid);
        }
      } else {
        thread.done = answer == Answer::kOutside;
      }
      all &= thread.done;
    }
    if (all && !ec) return true;
    if (monotonic_ns() >= give_up) return false;
    raw_sleep(200000);
  }
}

// Jumps of probes over the entries are taken back, and none is laid there from now on.
void keep_probes_away(const std::vector<NativeHook*>& hooks) {
  for (NativeHook* hook : hooks) hook->reserved.store(true, std::memory_order_seq_cst);
  if (!g_probes.enabled()) return;
  g_probes.reserved.store(has_hook_within, std::memory_order_seq_cst);
  // Who was laying one has done so.
  g_probes.hold();
  g_probes.release();
  constexpr uint64_t kLongestJump = 8;
  for (const NativeHook* hook : hooks) {
    for (uint64_t pc = hook->patch - kLongestJump; pc < hook->patch + hook->moved; ++pc) {
      while (g_probes.patched(pc) && g_probes.take_back(pc) == LayResult::kBusy) raw_sleep(10000);
    }
  }
}

}  // namespace

std::string prepare_patching() {
  CodePatch::init();
  if (!CodePatch::can_serialise()) return "the kernel cannot serialise all cores (membarrier)";
  if (!CodePatch::can_write_text()) return "the code of libraries cannot be written (/proc/self/mem)";
  return "";
}

void put_hooks_in(const std::vector<NativeHook*>& hooks, std::vector<std::string>* why) {
  why->assign(hooks.size(), "");
  Text text;
  if (!text.is_open()) {
    why->assign(hooks.size(), "its code cannot be written (/proc/self/mem)");
    return;
  }
  keep_probes_away(hooks);
  bool inner = false;
  for (size_t i = 0; i < hooks.size(); ++i) {
    NativeHook& hook = *hooks[i];
    if (!text.holds(hook.patch, hook.original, hook.moved))
      (*why)[i] = "its code has changed meanwhile";
    else if (!text.write(hook.patch, &kInt3, 1))
      (*why)[i] = "its code cannot be written (/proc/self/mem)";
    for (uint8_t offset : hook.inner) inner |= offset != 0;
  }
  CodePatch::serialise_cores();
  const bool free = !inner || all_are_outside();
  for (size_t i = 0; i < hooks.size(); ++i) {
    if (!(*why)[i].empty()) continue;
    bool has_inner = false;
    for (uint8_t offset : hooks[i]->inner) has_inner |= offset != 0;
    if (has_inner && !free) {
      (*why)[i] = "a thread may stand in its first bytes, and blocks SIGBUS";
      text.write(hooks[i]->patch, hooks[i]->original, 1);
    } else if (!text.write(hooks[i]->patch + 1, hooks[i]->jump + 1, kJumpBytes - 1)) {
      (*why)[i] = "its code cannot be written (/proc/self/mem)";
    }
  }
  CodePatch::serialise_cores();
  for (size_t i = 0; i < hooks.size(); ++i) {
    if (!(*why)[i].empty()) continue;
    hooks[i]->in_force.store(true, std::memory_order_release);
    text.write(hooks[i]->patch, hooks[i]->jump, 1);
  }
  CodePatch::serialise_cores();
}

size_t take_hooks_out(const std::vector<NativeHook*>& hooks) {
  Text text;
  std::vector<NativeHook*> here;
  size_t left = 0;
  for (NativeHook* hook : hooks) {
    if (!text.is_open() || !text.holds(hook->patch, hook->jump, kJumpBytes) || !text.write(hook->patch, &kInt3, 1)) {
      ++left;
    } else {
      here.push_back(hook);
    }
  }
  CodePatch::serialise_cores();
  for (NativeHook* hook : here) text.write(hook->patch + 1, hook->original + 1, kJumpBytes - 1);
  CodePatch::serialise_cores();
  for (NativeHook* hook : here) {
    text.write(hook->patch, hook->original, 1);
    hook->in_force.store(false, std::memory_order_release);
    hook->reserved.store(false, std::memory_order_release);
  }
  CodePatch::serialise_cores();
  return left;
}

}  // namespace classaccess
