// One recording: from Agent_OnLoad or a later start to VMDeath or stop. Owns the tables and
// the writer, takes the steps of the start in order and undoes them when one fails. Never
// destroyed: late callbacks may still be in it.
// Context: the JVMTI callbacks, which only forward here, and the Session.
#pragma once

#include <jvmti.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "agent/calls/java/java_calls.h"
#include "agent/fault/fault_handler.h"
#include "agent/heap/object_starts.h"
#include "agent/hotspot/heap_regions.h"
#include "agent/hotspot/vm_structs.h"
#include "agent/jvmti/class_fields.h"
#include "agent/jvmti/heap_tracker.h"
#include "agent/jvmti/options.h"
#include "agent/protect/code_cache_room.h"
#include "agent/protect/heap_mappings.h"
#include "agent/store/writer.h"

namespace classaccess {

class Recording {
 public:
  // What of the options can be checked before there is a VM: empty string or the message.
  static std::string check(const Options& options);

  // Agent_OnLoad. Empty string, or the one message why the JVM must not start; then
  // nothing of ours is left behind.
  std::string prepare(jvmtiEnv* jvmti, const Options& options);

  // Agent_OnLoad with start=manual: the heap is born shared and the code cache gets its room,
  // so that recordings started later have what one of the start has. Same result.
  std::string prepare_later(jvmtiEnv* jvmti, const Options& options);

  // In a JVM that runs: all of it, until the heap is closed. Empty string, or why not; then
  // the JVM runs on untraced, and another Recording may try.
  std::string start_late(jvmtiEnv* jvmti, JNIEnv* jni, jthread current, const Options& options);

  // Ends it while the program goes on: the database is complete; no page is closed, no
  // instruction patched, no handler, key or thread of it is left. What could not be given
  // back is told by left(); another call tries again. On a thread attached to the VM.
  void stop(JNIEnv* jni);
  const std::string& left() const { return left_; }

  // Any thread under the Session's lock.
  bool active() const { return begun_; }
  const std::string& database() const { return database_; }
  // "a recording is active ... since ... into ..."
  std::string title() const;
  std::string status() const;
  // When and why it ended.
  const std::string& last_words() const { return last_words_; }
  // All that was recorded before the call is committed. Empty string or the reason. On a
  // thread attached to the VM.
  std::string snapshot();

  // The JVM's start failed or the process exits before VMInit: removes the database.
  void abandon_if_not_begun();

  // VMInit: completes the layout, proves the handler, closes the heap for Java
  // threads. On failure says so and lets the application run untraced.
  void begin(JNIEnv* jni, jthread current);
  // VMDeath.
  void end();

  void thread_started(JNIEnv* jni, jthread thread);
  void thread_ended(JNIEnv* jni, jthread thread);
  void class_prepared(JNIEnv* jni, jclass klass);
  void gc_started();
  void gc_finished();

 private:
  std::string take_steps();
  std::string look_at_vm();
  std::string take_capabilities();
  bool wants_probes() const { return options_.probes && twin_use_ != TwinUse::kOff; }
  void reserve_rooms();
  void start_probes();
  std::string start_pages();
  void stop_pages();
  void name_pages();
  bool closes_heap() const { return options_.mode != Mode::kOff; }
  bool times_calls() const { return !options_.java_calls.empty() || !options_.native_calls.empty(); }
  std::string calls_status() const;
  std::string prepare_calls();
  std::string start_calls(JNIEnv* jni);
  void set_code_cache_rule();
  void stop_calls(JNIEnv* jni);  // null: the process ends
  std::string begin_steps(JNIEnv* jni, jthread current);
  std::string check_flags() const;
  std::string check_heap();
  std::string choose_gate();
  std::string choose_twin();
  void abandon_heap();
  void undo_begin();
  void enable_events(bool on);
  void close_at_safepoint();
  uint32_t settle_threads();
  void release();
  std::string convert_heap();
  void convert_in_heap_walk();
  void convert_at_safepoint();
  uint64_t ordinary_thread_vtable(JNIEnv* jni);
  uint64_t java_thread_of(JNIEnv* jni, jthread thread, jclass* thread_class) const;
  uint64_t tlab_reserve_bytes() const;
  void adopt_existing_threads(JNIEnv* jni, jthread current);
  void name_thread(JNIEnv* jni, jthread thread, ThreadState* state);
  bool wants(const char* thread_name) const;
  RunInfo run_info(JNIEnv* jni);
  void report_unmatched_patterns() const;
  std::string system_property(const char* key) const;

  Options options_;
  jvmtiEnv* jvmti_ = nullptr;
  VmStructs vm_;
  VmLayout layout_;
  ClassPatterns patterns_;
  ClassTable classes_;
  MethodTable methods_;
  CodeLookup code_;
  SiteTable sites_;
  InstructionCache instructions_;
  ThreadPool threads_;
  VirtualThreads virtual_threads_;
  std::vector<std::string_view> thread_globs_;
  GcLog collections_;
  ObjectStarts starts_;
  Resolver resolver_;
  AccessPath access_;
  ClassFields fields_;
  HeapRegions regions_;
  HeapTracker tracker_;
  JavaCalls java_calls_;
  Writer writer_;
  uint64_t max_heap_bytes_ = 0;
  TwinUse twin_use_ = TwinUse::kOff;
  std::atomic<bool> begun_{false};
  bool ever_begun_ = false;
  bool late_ = false;  // attached to a running JVM, or started later
  enum class Conversion { kNone, kWanted, kDone };
  std::atomic<Conversion> conversion_{Conversion::kNone};
  int conversion_error_ = 0;  // errno
  bool events_on_ = false;
  std::string database_;  // path as expanded
  int64_t since_ = 0;     // unix time of the start
  std::string left_, last_words_;
};

}  // namespace classaccess
