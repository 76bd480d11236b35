// The end of a recording: waits until no thread is in the midst of our code (fault/settle.h).
#include <stdlib.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/fault/fault_handler.h"
#include "agent/fault/probed_access.h"
#include "agent/fault/settle.h"
#include "agent/fault/signal_frames.h"
#include "agent/jvmti/recording.h"

namespace classaccess {
namespace {

constexpr uint64_t kSettleNs = 10000000000;

// A thread in a system call.
struct Waiting {
  uint64_t sp = 0, pc = 0;
  bool operator==(const Waiting& other) const { return sp == other.sp && pc == other.pc; }
};

// Nothing: it is in none now, or cannot be told. (-1: it waits for memory, in the midst of its code.)
std::optional<Waiting> waits(int32_t tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/syscall");
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  if (words.size() < 3 || words[0] == "-1") return std::nullopt;
  return Waiting{strtoull(words[words.size() - 2].c_str(), nullptr, 16), strtoull(words.back().c_str(), nullptr, 16)};
}

enum class Where { kOutside, kMayBeInside, kBehindAHandler };

// A thread that is not asked. `thread`: null if it is not recorded.
Where look_at(int32_t tid, ThreadState* thread) {
  const std::optional<Waiting> before = waits(tid);
  if (!before) return Where::kMayBeInside;
  // Our own handler's system call, or that of our own thread.
  uint32_t inside = 0;
  const auto* nesting = thread != nullptr ? thread->inside.load() : nullptr;
  if (thread != nullptr && (!safe_load(reinterpret_cast<uint64_t>(nesting), &inside) || inside != 0)) {
    return Where::kMayBeInside;
  }
  if (FaultHandler::is_agent_code(before->pc)) return Where::kMayBeInside;
  const bool behind = handler_goes_back_to(before->sp, 0, [](uint64_t pc) { return FaultHandler::is_agent_code(pc); });
  // It has not moved meanwhile; if it has moved and come back, it has left our code as well.
  if (waits(tid) != before) return Where::kMayBeInside;
  return behind ? Where::kBehindAHandler : Where::kOutside;
}

}  // namespace

// Threads that have not settled in time.
uint32_t Recording::settle_threads() {
  struct Thread {
    std::optional<uint32_t> slot;  // asked
    bool done = false;
  };
  std::map<int32_t, Thread> threads;
  uint32_t slots = 0;
  const uint64_t give_up = monotonic_ns() + kSettleNs;
  const int32_t own = static_cast<int32_t>(raw_syscall(SYS_gettid));
  for (;;) {
    std::map<int32_t, ThreadState*> known;
    threads_.for_each([&](ThreadState& thread) {
      if (thread.phase.load(std::memory_order_acquire) == ThreadPhase::kLive) known[thread.tid] = &thread;
    });
    uint32_t left = 0;
    std::error_code ec;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ec)) {
      const int32_t tid = atoi(task.path().filename().c_str());
      Thread& thread = threads[tid];
      if (tid == own || thread.done) continue;
      const Settled answer = thread.slot ? settled(*thread.slot) : Settled::kNotYet;
      if (answer == Settled::kNotYet) {
        const auto it = known.find(tid);
        ThreadState* state = it != known.end() ? it->second : nullptr;
        const Where where = look_at(tid, state);
        if (where == Where::kOutside && state != nullptr) g_probed.let_go(state);
        thread.done = where == Where::kOutside;
        // Behind a handler it is not asked: the handler's system call would meet EINTR.
        if (where == Where::kMayBeInside && !thread.slot && slots < kSettleSlots) thread.slot = slots++;
        if (where == Where::kMayBeInside && thread.slot && !ask_to_settle(*thread.slot, tid))
          thread.done = true;  // gone
      } else {
        thread.done = answer == Settled::kYes;
      }
      if (!thread.done) ++left;
    }
    if (left == 0 || monotonic_ns() >= give_up) return left;
    raw_sleep(1000000);
  }
}

}  // namespace classaccess
