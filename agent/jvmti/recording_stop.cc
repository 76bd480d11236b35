// The end of a Recording while the program goes on, and looking at one while it runs.
//
// At a safepoint the probes' records are taken, the patches taken back and the pages opened,
// so that no thread comes to our code any more. Then those that are on the way are waited
// for, the writer ends, and hooks, handlers and key are given back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"
#include "agent/base/wake.h"
#include "agent/fault/probed_access.h"
#include "agent/fault/settle.h"
#include "agent/jvmti/jni_critical.h"
#include "agent/jvmti/library_hooks.h"
#include "agent/jvmti/recording.h"
#include "agent/jvmti/virtual_mounts.h"
#include "agent/pages/open_pages.h"
#include "agent/probe/probe_sites.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/heap_mappings.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

constexpr uint64_t kSettleNs = 10000000000;

std::string utc(int64_t unix_seconds) {
  time_t seconds = unix_seconds;
  tm parts;
  gmtime_r(&seconds, &parts);
  char text[40];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Calls `what` on the VM thread while all Java threads stand still. False: the VM did not.
struct AtSafepoint {
  void (*what)(void*);
  void* context;
  bool called = false;
};
bool run_at_safepoint(jvmtiEnv* jvmti, void (*what)(void*), void* context) {
  jvmtiCapabilities wanted;
  memset(&wanted, 0, sizeof(wanted));
  wanted.can_tag_objects = 1;
  if (jvmti->AddCapabilities(&wanted) != JVMTI_ERROR_NONE) return false;
  jvmtiHeapCallbacks callbacks;
  memset(&callbacks, 0, sizeof(callbacks));
  // The walk begins with the roots, inside a VM operation, and ends with the first.
  callbacks.heap_reference_callback = [](jvmtiHeapReferenceKind, const jvmtiHeapReferenceInfo*, jlong, jlong, jlong,
                                         jlong*, jlong*, jint, void* data) -> jint {
    auto* once = static_cast<AtSafepoint*>(data);
    if (!once->called) once->what(once->context);
    once->called = true;
    return JVMTI_VISIT_ABORT;
  };
  AtSafepoint once{what, context};
  jvmti->FollowReferences(0, nullptr, nullptr, &callbacks, &once);
  return once.called;
}

// A thread that is not in a system call now (or cannot be told).
bool runs(int32_t tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/syscall");
  std::string word;
  return !(file >> word) || word == "running";
}

}  // namespace

std::string Recording::title() const {
  std::string text = "a recording is active in this JVM already, since " + utc(since_) + ", into '" + database_ + "'";
  if (g_recording.load(std::memory_order_relaxed) == RecordingState::kClosed) text += " (it has failed: stop it)";
  return text;
}

std::string Recording::status() const {
  ThreadCounters sum;
  uint64_t live = 0;
  const_cast<ThreadPool&>(threads_).for_each([&](ThreadState& thread) {
    ++live;
    sum.recorded += thread.counters.recorded;
    sum.dropped += thread.counters.dropped;
    sum.traps += thread.counters.traps;
  });
  bool failed = g_recording.load(std::memory_order_relaxed) == RecordingState::kClosed;
  std::string text = failed ? "recording has failed, since " : "recording since ";
  text += utc(since_) + " into " + database_ + "\n";
  text += "options: " + (options_.text.empty() ? "none" : options_.text) + "\n";
  text += "threads recorded now: " + std::to_string(live) + ", their traps: " + std::to_string(sum.traps) +
          ", dropped: " + std::to_string(sum.dropped) + "\n";
  return text;
}

std::string Recording::snapshot() {
  if (g_recording.load(std::memory_order_relaxed) != RecordingState::kOn) {
    return "the recording has failed; what was committed is readable in '" + database_ + "'";
  }
  // The last record of a probe is believed only where the thread has gone on.
  if (g_probed.enabled() && !run_at_safepoint(
                                jvmti_, [](void*) { g_probed.drain_all(true); }, nullptr)) {
    return "the JVM offers no safepoint now";
  }
  name_pages();
  constexpr int kMilliseconds = 30000;
  if (writer_.flush(kMilliseconds)) return "";
  return "the database was not written within " + std::to_string(kMilliseconds / 1000) + " s: '" + database_ + "'";
}

void Recording::close_at_safepoint() {
  g_probed.drain_all(true);
  RecordingState on = RecordingState::kOn;
  g_recording.compare_exchange_strong(on, RecordingState::kEnding, std::memory_order_acq_rel);
  g_probes.close(true);
  if (uint32_t left = g_probes.left_behind.load(std::memory_order_relaxed)) {
    raw_log(LogLevel::kWarn, "%u instructions keep their probes: the code could not be restored", left);
  }
  g_open_pages.stop();
  HeapMappingsLock lock;
  g_gate.end();
}

// Threads that have not settled in time.
uint32_t Recording::settle_threads() {
  struct Asked {
    uint32_t slot = 0;
    bool done = false;
  };
  std::map<int32_t, Asked> asked;
  const uint64_t give_up = monotonic_ns() + kSettleNs;
  const int32_t own = static_cast<int32_t>(raw_syscall(SYS_gettid));
  for (;;) {
    std::map<int32_t, const uint32_t*> known;
    threads_.for_each([&](ThreadState& thread) {
      if (thread.phase.load(std::memory_order_acquire) == ThreadPhase::kLive) known[thread.tid] = thread.inside.load();
    });
    uint32_t left = 0;
    std::error_code ec;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ec)) {
      int32_t tid = atoi(task.path().filename().c_str());
      if (tid == own) continue;
      auto it = asked.find(tid);
      if (it == asked.end()) {
        auto state = known.find(tid);
        // Blocked in a system call, and not in one of our handler's.
        if (!runs(tid) && (state == known.end() || (state->second != nullptr && *state->second == 0))) continue;
        if (asked.size() == kSettleSlots) {
          ++left;
          continue;
        }
        it = asked.emplace(tid, Asked{static_cast<uint32_t>(asked.size()), false}).first;
        if (!ask_to_settle(it->second.slot, tid)) continue;
      }
      if (it->second.done) continue;
      Settled answer = settled(it->second.slot);
      it->second.done = answer == Settled::kYes;
      if (answer == Settled::kNotYet) ask_to_settle(it->second.slot, tid);
      if (answer != Settled::kYes) ++left;
    }
    if (left == 0 || monotonic_ns() >= give_up) return left;
    raw_sleep(1000000);
  }
}

void Recording::stop() {
  if (begun_ && left_.empty()) {
    if (!run_at_safepoint(
            jvmti_, [](void* self) { static_cast<Recording*>(self)->close_at_safepoint(); }, this)) {
      raw_log(LogLevel::kInfo, "the JVM offers no safepoint: the recording ends without one");
      close_at_safepoint();
    }
  }
  uint32_t unsettled = settle_threads();
  if (unsettled != 0) {
    left_ = std::to_string(unsettled) +
            " threads are still inside an access of the recording that has ended; nothing is closed or patched any "
            "more: try again";
    return;
  }
  left_.clear();
  release();
}

void Recording::release() {
  bool failed = g_recording.load(std::memory_order_relaxed) == RecordingState::kClosed;
  g_probed.drain_all(true);
  name_pages();
  writer_.stop();
  if (options_.mode == Mode::kPages) stop_pages();
  enable_events(false);
  ignore_virtual_mounts(jvmti_);
  begun_ = false;
  remove_library_hooks();
  if (!restore_jni_critical(jvmti_)) {
    raw_log(LogLevel::kWarn,
            "native code keeps a critical array of the recording that has ended: JNI's functions stay "
            "ours until it is released");
  }
  abandon_heap();
  FaultHandler::stop();
  FaultHandler::forget_threads();
  g_probed.end();
  g_gate.release();
  instructions_.destroy();
  if (writer_.discard()) recycle_reservations();
  g_recording.store(RecordingState::kOff, std::memory_order_release);
  last_words_ =
      std::string("the last one ") + (failed ? "failed" : "ended at " + utc(time(nullptr))) + ": " + database_ + "\n";
  report_unmatched_patterns();
}

}  // namespace classaccess
