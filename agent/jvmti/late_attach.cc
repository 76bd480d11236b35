// The Recording in a JVM that runs already, until the heap is closed: Agent_OnAttach, or a
// start after another recording has ended.
//
// The same steps as at start, but the heap exists, and threads that are older than the key
// have it closed already. So everything is ready before the heap is made shared and closed,
// which needs a safepoint: a collection is asked for, and its GarbageCollectionFinish does
// it. Epsilon has no collections, and a pause of Shenandoah's lies in the midst of one that
// moves objects: there it is the first object of a heap walk.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/safe_load.h"
#include "agent/jvmti/jni_critical.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/jvmti/recording.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_conversion.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

// What is readable and writable of [low, high) now.
std::vector<HeapRange> committed_ranges(uint64_t low, uint64_t high) {
  std::vector<HeapRange> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0, inode = 0;
    char permissions[8] = {};
    if (sscanf(line.c_str(), "%lx-%lx %7s %*x %*s %lu", &from, &to, permissions, &inode) != 4) continue;
    HeapRange range{std::max<uint64_t>(from, low), std::min<uint64_t>(to, high), inode != 0};
    if (range.low < range.high && strncmp(permissions, "rw", 2) == 0) ranges.push_back(range);
  }
  return ranges;
}

// What holds objects: each space or region up to its top.
std::vector<HeapRange> used_ranges(const HeapRegions& regions) {
  std::vector<HeapSpace> spaces(regions.count());
  spaces.resize(regions.read_spaces(spaces.data(), spaces.size()));
  std::vector<HeapRange> ranges;
  for (const HeapSpace& space : spaces) {
    if (space.bottom < space.top) ranges.push_back({space.bottom, space.top});
  }
  std::sort(ranges.begin(), ranges.end(), [](const HeapRange& a, const HeapRange& b) { return a.low < b.low; });
  return ranges;
}

uint64_t cpu_ns() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

std::string Recording::start_late(jvmtiEnv* jvmti, JNIEnv* jni, jthread current, const Options& options) {
  options_ = options;
  jvmti_ = jvmti;
  late_ = true;
  reset_counters();
  // For the loaded classes: with -Xcheck:jni more references than asked for are complained of.
  constexpr jint kReferences = 60000;
  bool frame = jni->PushLocalFrame(kReferences) == JNI_OK;
  if (!frame) jni->ExceptionClear();
  std::string problem = take_steps();
  if (problem.empty()) problem = begin_steps(jni, current);
  if (frame) jni->PopLocalFrame(nullptr);
  if (problem.empty()) return "";
  enable_events(false);
  undo_begin();
  g_gate.release();
  instructions_.destroy();
  return problem;
}

uint64_t Recording::ordinary_thread_vtable(JNIEnv* jni) {
  // Compiler, service and attach threads are JavaThreads of classes of their own: most
  // threads that JVMTI lists are not of them.
  jint count = 0;
  JvmtiMemory<jthread> threads(jvmti_);
  if (jvmti_->GetAllThreads(&count, threads.out()) != JVMTI_ERROR_NONE || count == 0) return 0;
  std::map<uint64_t, int> seen;
  jclass thread_class = nullptr;
  for (jint i = 0; i < count; ++i) {
    uint64_t vtable = 0;
    uint64_t java_thread = java_thread_of(jni, threads[i], &thread_class);
    if (java_thread != 0 && safe_load(java_thread, &vtable)) ++seen[vtable];
    jni->DeleteLocalRef(threads[i]);
  }
  if (thread_class != nullptr) jni->DeleteLocalRef(thread_class);
  uint64_t best = 0;
  for (const auto& [vtable, times] : seen) {
    if (best == 0 || times > seen[best]) best = vtable;
  }
  return best;
}

std::string Recording::convert_heap() {
  conversion_error_ = 0;
  if (layout_.collector == Collector::kShenandoah) jvmti_->ForceGarbageCollection();
  conversion_.store(Conversion::kWanted, std::memory_order_release);
  if (layout_.collector != Collector::kEpsilon && layout_.collector != Collector::kShenandoah) {
    jvmti_->ForceGarbageCollection();
  }
  if (conversion_.load(std::memory_order_acquire) == Conversion::kWanted) {
    jvmtiHeapCallbacks callbacks;
    memset(&callbacks, 0, sizeof(callbacks));
    callbacks.heap_iteration_callback = [](jlong, jlong, jlong*, jint, void* recording) -> jint {
      static_cast<Recording*>(recording)->convert_in_heap_walk();
      return JVMTI_VISIT_ABORT;
    };
    jvmti_->IterateThroughHeap(0, nullptr, &callbacks, this);
  }
  Conversion wanted = Conversion::kWanted;
  if (conversion_.compare_exchange_strong(wanted, Conversion::kNone)) {
    return "the JVM did not reach a safepoint at which its heap could be closed";
  }
  if (conversion_error_ == 0) return "";
  return std::string("the heap could not be mapped twice: ") + strerror(conversion_error_);
}

void Recording::convert_in_heap_walk() {
  if (conversion_.load(std::memory_order_acquire) != Conversion::kWanted) return;
  fields_.collection_started();
  convert_at_safepoint();
  fields_.collection_finished();
  if (conversion_error_ == 0) g_gate.close_all();
}

void Recording::convert_at_safepoint() {
  Conversion wanted = Conversion::kWanted;
  if (!conversion_.compare_exchange_strong(wanted, Conversion::kDone, std::memory_order_acq_rel)) return;
  uint64_t started = monotonic_ns(), started_cpu = cpu_ns();
  std::vector<HeapRange> committed = committed_ranges(layout_.heap_low, layout_.heap_high);
  std::vector<HeapRange> used = used_ranges(regions_);
  HeapConversion::Heap heap{layout_.heap_low, layout_.heap_high, committed.data(),
                            committed.size(), used.data(),       used.size()};
  ConversionResult result = HeapConversion::run(heap, twin_use_);
  uint64_t converted = monotonic_ns(), converted_cpu = cpu_ns();
  conversion_error_ = result.error;
  if (result.error != 0) return;
  layout_.twin_distance = g_twin.distance();
  tracker_.at_init(tlab_reserve_bytes());
  tracker_.apply_scope();
  g_recording.store(RecordingState::kOn, std::memory_order_release);
  raw_log(LogLevel::kInfo, "heap closed: %lu MB committed, %lu MB copied in %lu us (%lu us of CPU), walked in %lu us",
          result.committed >> 20, result.copied >> 20, (converted - started) / 1000,
          (converted_cpu - started_cpu) / 1000, (monotonic_ns() - converted) / 1000);
}

}  // namespace classaccess
