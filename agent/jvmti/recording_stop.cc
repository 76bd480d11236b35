// The end of a Recording while the program goes on, and looking at one while it runs.
//
// At a safepoint the probes' records are taken, the patches taken back and the pages opened,
// so that no thread comes to our code any more. Then those that are on the way are waited
// for, the writer ends, and hooks, handlers and key are given back.
#include <string.h>
#include <time.h>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/reserve.h"
#include "agent/fault/probed_access.h"
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
          ", dropped: " + std::to_string(sum.dropped) + "\n" + calls_status();
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
  g_probes.close(ProbeSites::Program::kStandstill);
  g_open_pages.stop();
  HeapMappingsLock lock;
  g_gate.end();
}

void Recording::stop(JNIEnv* jni) {
  if (begun_) stop_calls(jni);
  if (begun_ && (left_.empty() || g_probes.left_behind.load(std::memory_order_relaxed) != 0)) {
    if (!run_at_safepoint(
            jvmti_, [](void* self) { static_cast<Recording*>(self)->close_at_safepoint(); }, this)) {
      raw_log(LogLevel::kInfo, "the JVM offers no safepoint: the recording ends without one");
      close_at_safepoint();
    }
  }
  // They need all that would be given back.
  if (uint32_t patched = g_probes.left_behind.load(std::memory_order_relaxed)) {
    left_ = std::to_string(patched) +
            " instructions still have their probes, the code could not be restored (open files at their limit?): try "
            "again";
    return;
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
