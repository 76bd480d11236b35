#include "agent/jvmti/recording.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/terminal_line.h"
#include "agent/calls/native/native_calls.h"
#include "agent/fault/java_thread.h"
#include "agent/fault/probed_access.h"
#include "agent/heap/object_header.h"
#include "agent/hotspot/layout_probe.h"
#include "agent/jvmti/control_thread.h"
#include "agent/jvmti/events.h"
#include "agent/jvmti/heap_system_calls.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/jvmti/heap_verify.h"
#endif
#include "agent/jvmti/jni_critical.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/jvmti/library_hooks.h"
#include "agent/jvmti/library_scan.h"
#include "agent/jvmti/signal_calls.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/jvmti/take_back_rounds.h"
#endif
#include "agent/jvmti/virtual_mounts.h"
#include "agent/pages/open_pages.h"
#include "agent/probe/code_patch.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/code_cache_room.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/heap_mappings.h"
#include "agent/protect/library_room.h"
#include "agent/protect/twin_view.h"

#ifndef CLASSACCESS_VERSION
#define CLASSACCESS_VERSION "unknown"
#endif

namespace classaccess {

namespace {

// In a forked child there is no writer; the heap itself is not inherited.
Writer* g_writer_of_process = nullptr;
void in_forked_child() {
  forget_terminal_line();
  g_probes.release();
  g_recording.store(RecordingState::kClosed, std::memory_order_relaxed);
  if (g_writer_of_process != nullptr) g_writer_of_process->forget_in_child();
}

std::string heap_range_text(uint64_t low, uint64_t high) {
  char text[48];
  snprintf(text, sizeof(text), "%lx-%lx", low, high);
  return text;
}

#ifdef CLASSACCESS_VERIFY
const VmLayout* g_layout = nullptr;
#endif

void at_tick() {
#ifdef CLASSACCESS_VERIFY
  take_back_at_tick(*g_layout);
#endif
  watch_signals();
  patch_at_tick();
  hook_new_libraries();
  if (g_probed.enabled()) scan_libraries();
}

}  // namespace

std::string Recording::system_property(const char* key) const {
  JvmtiMemory<char> value(jvmti_);
  if (jvmti_->GetSystemProperty(key, value.out()) != JVMTI_ERROR_NONE) return "";
  return value.get();
}

RunInfo Recording::run_info(JNIEnv*) {
  RunInfo run;
  std::ifstream file("/proc/self/cmdline");
  std::string command((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (char& c : command) c = c == '\0' ? ' ' : c;
  while (!command.empty() && command.back() == ' ') command.pop_back();
  run.command = command;
  run.jvm_version = system_property("java.vm.version");
  run.jvm_vendor = system_property("java.vm.vendor");
  run.gc = collector_name(layout_.collector);
  run.protection = !closes_heap() ? "none" : g_gate.per_thread() ? "pkey" : "mprotect";
  run.options = options_.text;
  run.agent_version = CLASSACCESS_VERSION;
  if (options_.mode == Mode::kPages) run.page_size = options_.page_bytes;
  run.heap_start = layout_.heap_low;
  run.heap_size = layout_.heap_high - layout_.heap_low;
  run.started_ns = monotonic_ns();
  return run;
}

// The heap was recognised, and is mapped twice unless that is not wanted.
std::string Recording::check_heap() {
  HeapMappingState heap = heap_mapping_state();
  if (heap.error != 0) return std::string("the heap could not be mapped twice: ") + strerror(heap.error);
  if (!heap.found || layout_.heap_low < heap.low || layout_.heap_high > heap.high) {
    return "the heap is not mapped the way this build understands";
  }
  layout_.twin_distance = g_twin.distance();
  if (twin_use_ == TwinUse::kWherePossible && !g_twin.created()) {
    raw_log(LogLevel::kWarn, "no second view of the heap: no room for it (ulimit -v?); using twin=off");
  }
  return "";
}

uint64_t Recording::tlab_reserve_bytes() const {
  uint64_t words = 2;
  if (auto address = vm_.address("ThreadLocalAllocBuffer", "_reserve_for_allocation_prefetch")) {
    int32_t prefetch = *reinterpret_cast<const int32_t*>(*address);
    if (prefetch > 2) words = static_cast<uint64_t>(prefetch);
  }
  if (auto address = vm_.address("CollectedHeap", "_lab_alignment_reserve")) {
    words = std::max(words, *reinterpret_cast<const uint64_t*>(*address));
  }
  return align_object_size(layout_, words * 8);
}

std::string Recording::begin_steps(JNIEnv* jni, jthread current) {
  std::string problem = complete_layout(&layout_, vm_);
  if (!problem.empty()) return problem;
  if (options_.heap == HeapScope::kRange &&
      (options_.heap_high <= layout_.heap_low || options_.heap_low >= layout_.heap_high)) {
    return "option 'heap': " + heap_range_text(options_.heap_low, options_.heap_high) +
           " is outside the heap, which is " + heap_range_text(layout_.heap_low, layout_.heap_high);
  }
  if (!late_ && closes_heap()) problem = check_heap();
  if (!problem.empty()) return problem;
  if (!starts_.create(layout_.heap_low, layout_.heap_high)) return "no address space for the object starts";
  uint32_t jniid_offset = static_cast<uint32_t>(vm_.offset("JNIid", "_offset").value_or(0));
  if (jniid_offset == 0) return "vmStructs lacks JNIid::_offset";
  fields_.create(jvmti_, &classes_, &layout_, jniid_offset);
  problem = regions_.create(vm_, layout_);
  if (!problem.empty()) return problem;
  resolver_.create(&classes_, &starts_, &layout_);
  tracker_.create(&resolver_, &starts_, &collections_, &layout_, &regions_, vm_);

  access_.layout = &layout_;
  access_.classes = &classes_;
  access_.code = &code_;
  access_.sites = &sites_;
  access_.resolver = &resolver_;
  access_.threads = &threads_;
  access_.virtual_threads = &virtual_threads_;
  access_.instructions = &instructions_;
  access_.values = options_.values;
  access_.filter_threads = !options_.threads.empty();
  access_.late = late_;
  access_.part_of_heap = options_.heap != HeapScope::kAll;
  start_probes();
  problem = start_pages();
  if (!problem.empty()) return problem;
  uint64_t java_thread = find_java_thread(layout_, current_tid());
  if (java_thread == 0) return "this thread is not in the VM's thread list";
  access_.java_thread_vtable = late_ ? ordinary_thread_vtable(jni) : *reinterpret_cast<const uint64_t*>(java_thread);
  problem = FaultHandler::start(&access_);
  if (!problem.empty()) return problem;

  enable_events(true);
  if (!events_on_) return "the JVM refuses an event";
  begun_ = ever_begun_ = true;  // the callbacks may work now
  fields_.add_loaded(jni);      // also finds where a Thread has its name and number
  if (!late_ && closes_heap()) {
    tracker_.at_init(tlab_reserve_bytes());
    tracker_.apply_scope();
  }
#ifdef CLASSACCESS_VERIFY
  g_layout = &layout_;
  if (!g_heap_verify.create(&layout_, &classes_, tlab_reserve_bytes())) return "verify: no room for the claims";
#endif

  if (!install_jni_critical(jvmti_, &access_)) return "the JVM refuses another JNI function table";
  if (!add_system_call_hooks(&access_) || !add_signal_hooks(layout_.libjvm_text_low, layout_.libjvm_text_high)) {
    return "more library functions are to be replaced than there is room for";
  }
  install_library_hooks();

  WriterSources sources;
  sources.threads = &threads_;
  sources.virtual_threads = &virtual_threads_;
  sources.classes = &classes_;
  sources.methods = &methods_;
  sources.sites = &sites_;
  sources.collections = &collections_;
  sources.layout = &layout_;
  sources.tick = at_tick;
  sources.calls = times_calls();
  if (g_control.block() != nullptr) sources.live = &g_control.block()->live;
  if (g_probed.enabled()) sources.collect_probes = ProbedAccess::collect;
  problem = writer_.start(sources, run_info(jni));
  if (!problem.empty()) return problem;
  static bool forks_watched = false;
  g_writer_of_process = &writer_;
  if (!forks_watched) pthread_atfork([] { g_probes.hold(); }, [] { g_probes.release(); }, in_forked_child);
  forks_watched = true;
  if (g_control.block() != nullptr) set_terminal_line(&g_control.block()->line);
  AgentScope scope;
  if (late_ && closes_heap()) {
    problem = convert_heap();
    if (!problem.empty()) return problem;
  } else {
    g_recording.store(RecordingState::kOn, std::memory_order_release);
    g_gate.close_all();
  }
  adopt_existing_threads(jni, current);
  g_probed.hold(false);
  problem = start_calls(jni);
  scope.leave(false);
  if (!problem.empty()) return problem;
  // Its ThreadStart comes a while after VMInit. (Not of the control thread.)
  thread_started(jni, current);
  return "";
}

// Without room for them the recording goes on by traps; so it does without a twin view,
// where probes would have nothing to work on.
void Recording::start_probes() {
  const RoomAround room = take_code_cache_room(layout_.code_low);
  if (!g_twin.created()) release_library_room();
  if (!options_.probes || !g_twin.created()) return;
  // Attached: what is round the code cache was taken by others before us.
  if (late_ && room.low_begin == room.low_end && room.high_begin == room.high_end) return;
  g_probed.hold(late_);
  // In front of it lies the closed page where null leads as a compressed oop with a base.
  const HeapMappingState heap = heap_mapping_state();
  int error = g_twin.close_image(heap.low, layout_.heap_low);
  if (error == 0) error = g_twin.close_image(layout_.heap_high, heap.high);
  if (error != 0) {
    raw_log(LogLevel::kWarn, "the space round the heap's second view cannot be closed: %s; every access traps",
            strerror(error));
    return;
  }
  if (layout_.jdk_major >= 21 && !watch_virtual_mounts(jvmti_)) {
    raw_log(LogLevel::kWarn, "this JVM does not say when virtual threads mount: no probes, every access traps");
    return;
  }
  OopRange oops{layout_.heap_low, layout_.heap_high, layout_.narrow_oop_base, layout_.narrow_oop_shift,
                watched_offset()};
  if (!g_probes.room().create(room.low_begin, room.low_end, room.high_begin, room.high_end) || !g_probes.create(oops) ||
      !g_probed.create(&access_, &starts_)) {
    raw_log(LogLevel::kWarn, "no room for probes round the code cache (ulimit -v?): every access traps");
    return;
  }
  const RoomAround library = library_room();
  // Attached: none was reserved.
  if (late_ && library.low_begin == library.low_end && library.high_begin == library.high_end) return;
  if (!CodePatch::can_write_text()) {
    release_library_room();
    raw_log(LogLevel::kWarn,
            "the text of libraries cannot be patched (/proc/self/mem or membarrier refused): accesses of the VM and of "
            "libraries trap");
    return;
  }
  scan_libraries();
  if (!g_probes.library_room().create(library.low_begin, library.low_end, library.high_begin, library.high_end)) {
    raw_log(LogLevel::kWarn, "no room for probes round libjvm (ulimit -v?): accesses of the VM and of libraries trap");
  }
}

void Recording::begin(JNIEnv* jni, jthread current) {
  // For the loaded classes: with -Xcheck:jni more references than asked for are complained of.
  constexpr jint kReferences = 60000;
  bool frame = jni->PushLocalFrame(kReferences) == JNI_OK;
  if (!frame) jni->ExceptionClear();
  std::string problem = begin_steps(jni, current);
  if (frame) jni->PopLocalFrame(nullptr);
  if (problem.empty()) {
    if (!log_enabled(LogLevel::kDebug)) return;
    std::istringstream layout(dump_layout(layout_));
    for (std::string line; std::getline(layout, line);) raw_log(LogLevel::kDebug, "layout: %s", line.c_str());
    return;
  }
  raw_log(LogLevel::kError, "%s; the program runs untraced", problem.c_str());
  undo_begin();
}

void Recording::enable_events(bool on) {
  constexpr jvmtiEvent kEvents[] = {JVMTI_EVENT_THREAD_START,
                                    JVMTI_EVENT_THREAD_END,
                                    JVMTI_EVENT_CLASS_PREPARE,
                                    JVMTI_EVENT_GARBAGE_COLLECTION_START,
                                    JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
                                    JVMTI_EVENT_COMPILED_METHOD_LOAD};
  events_on_ = on;
  for (jvmtiEvent event : kEvents) {
    jvmtiError error = jvmti_->SetEventNotificationMode(on ? JVMTI_ENABLE : JVMTI_DISABLE, event, nullptr);
    if (error != JVMTI_ERROR_NONE) events_on_ = false;
  }
}

void Recording::undo_begin() {
  begun_ = ever_begun_ = false;
  g_recording.store(RecordingState::kClosed, std::memory_order_release);
  restore_jni_critical(jvmti_);
  remove_library_hooks();
  g_probes.close(ProbeSites::Program::kStandstill);  // while their faults are still answered
  if (options_.mode == Mode::kPages) stop_pages();
  abandon_heap();
  FaultHandler::stop();
  g_probed.end();
  writer_.abandon();
}

void Recording::end() {
  if (!begun_) return;
#ifdef CLASSACCESS_VERIFY
  jvmti_->ForceGarbageCollection();  // the last pause, which checks what was claimed since the one before
#endif
  AgentScope scope;
  stop_calls(nullptr);
  // Closed already if the disk was full.
  RecordingState on = RecordingState::kOn;
  if (g_recording.compare_exchange_strong(on, RecordingState::kEnding, std::memory_order_acq_rel)) g_probes.leave();
  // Keys open as each thread traps next.
  if (!g_gate.per_thread()) g_gate.open_all();
  g_probed.drain_all(true);
  g_open_pages.stop();
  name_pages();
  writer_.stop();
  begun_ = false;
  g_recording.store(RecordingState::kClosed, std::memory_order_release);
  scope.leave(false);
  report_unmatched_patterns();
}

void Recording::report_unmatched_patterns() const {
  for (size_t i = 0; i < patterns_.count(); ++i) {
    const ClassPattern& pattern = patterns_.at(i);
    if (pattern.negative || pattern.matched.load(std::memory_order_relaxed) != 0) continue;
    raw_log(LogLevel::kWarn, "no loaded class matched the pattern `%s`", pattern.text.c_str());
  }
  for (const std::string& pattern : unmatched_native_patterns()) {
    raw_log(LogLevel::kWarn, "calls: no function of a loaded library matched `%s`", pattern.c_str());
  }
  for (const std::string& pattern : java_calls_.unmatched()) {
    raw_log(LogLevel::kWarn, "calls: no method of a loaded class matched `%s`", pattern.c_str());
  }
}

void Recording::class_prepared(JNIEnv* jni, jclass klass) {
  if (!begun_) return;
  AgentScope scope;
  JavaCalls::class_prepared(jni, klass);
  if (!closes_heap()) return;
  fields_.retry(jni);
  fields_.add_prepared(jni, klass);
}

void Recording::gc_started() {
  if (!begun_) return;
  if (!g_gate.per_thread()) g_gate.open_all();
  // While the addresses still mean what they meant.
  g_probed.drain_all(false);
  fields_.collection_started();
  tracker_.started();
}

void Recording::gc_finished() {
  if (!begun_) return;
  tracker_.finished();
  // A full one, after which the heap can be walked. (GCCause::_jvmti_force_gc.)
  if (late_ && tracker_.caused_by("JvmtiEnv ForceGarbageCollection")) convert_at_safepoint();
  fields_.collection_finished();
  if (g_recording.load(std::memory_order_acquire) != RecordingState::kOn) return;
  g_gate.close_all();
  // end() may have opened it meanwhile, for good.
  if (!g_gate.per_thread() && g_recording.load(std::memory_order_acquire) != RecordingState::kOn) g_gate.open_all();
}

}  // namespace classaccess
