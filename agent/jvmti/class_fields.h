// Field names and offsets of prepared classes, by JVMTI, published in the class table;
// those that handlers read themselves (StackChunk, Thread, String) also in the layout.
//
// Source of the offsets: the jfieldID encoding, unchanged from 17 to 25
// (share/runtime/jfieldIDWorkaround.hpp): an instance field's offset is id >> 2; a
// static one's id is a JNIid*, which exports its offset in vmStructs.
// Context: VMInit and ClassPrepare, on the thread that posts them, with its key open.
#pragma once

#include <jvmti.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "agent/heap/class_table.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

class ClassFields {
 public:
  void create(jvmtiEnv* jvmti, ClassTable* classes, VmLayout* layout, uint32_t jniid_offset) {
    jvmti_ = jvmti;
    classes_ = classes;
    layout_ = layout;
    jniid_offset_ = jniid_offset;
  }

  // ClassPrepare: enters the class and publishes its fields, its super classes' first. A class
  // that cannot be read now (a long collection) is remembered for retry().
  void add_prepared(JNIEnv* jni, jclass klass) { add(jni, klass, Seen::kPrepared); }

  // Once more what could not be read; at every event with a JNIEnv.
  void retry(JNIEnv* jni);

  // All classes loaded so far.
  void add_loaded(JNIEnv* jni);

  // The VM thread, inside the pause: mirrors move between the two.
  void collection_started() { started_.fetch_add(1, std::memory_order_acq_rel); }
  void collection_finished() { finished_.store(started_.load(std::memory_order_relaxed), std::memory_order_release); }

 private:
  struct Pending {
    jweak klass;
    int tries;
  };
  static constexpr int kMaxTries = 100;

  // Klass* of a class: its mirror holds it. 0 if it cannot be read. Waits for a
  // collection's end, at most a second.
  uint64_t klass_of_mirror(jclass mirror) const;
  // Why a class is looked at. Its event comes once: a row whose class had it before a collection is an
  // unloaded class's. That it is linked is seen earlier, by the event of a sub class on another thread.
  enum class Seen { kPrepared, kListed, kAsSuper };
  // False: to be tried again. Does nothing for arrays, classes not prepared, or ones that have their fields.
  bool try_add(JNIEnv* jni, jclass klass, Seen seen);
  ClassInfo* row_of(jclass klass, Seen seen);
  void add(JNIEnv* jni, jclass klass, Seen seen);
  void remember(JNIEnv* jni, jclass klass, int tries);
  const FieldSet* build(jclass klass, const ClassInfo& info, const FieldSet* super_fields);

  jvmtiEnv* jvmti_ = nullptr;
  ClassTable* classes_ = nullptr;
  VmLayout* layout_ = nullptr;
  uint32_t jniid_offset_ = 0;
  std::atomic<uint32_t> next_field_id_{1};
  std::atomic<uint32_t> started_{0}, finished_{0};  // collections; equal: none is running
  std::mutex mutex_;
  std::vector<Pending> pending_;
  std::atomic<size_t> pending_count_{0};
};

}  // namespace classaccess
