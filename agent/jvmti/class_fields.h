// Field names and offsets of prepared classes, by JVMTI, published in the class table;
// StackChunk.size also in the layout.
//
// Source of the offsets: the jfieldID encoding, unchanged from 17 to 25
// (share/runtime/jfieldIDWorkaround.hpp): an instance field's offset is id >> 2; a
// static one's id is a JNIid*, which exports its offset in vmStructs.
// Context: VMInit and ClassPrepare, on the thread that posts them, with its key open.
#pragma once

#include <jvmti.h>

#include <atomic>
#include <cstdint>

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

  // Enters the class and publishes its fields, its super classes' first. Does nothing
  // for arrays, primitives, classes not prepared, or ones that have their fields.
  void add(JNIEnv* jni, jclass klass);

  // All classes loaded so far.
  void add_loaded(JNIEnv* jni);

 private:
  // Klass* of a class: its mirror holds it. 0 for primitives.
  uint64_t klass_of_mirror(jclass mirror) const;
  const FieldSet* build(jclass klass, const ClassInfo& info, const FieldSet* super_fields);

  jvmtiEnv* jvmti_ = nullptr;
  ClassTable* classes_ = nullptr;
  VmLayout* layout_ = nullptr;
  uint32_t jniid_offset_ = 0;
  std::atomic<uint32_t> next_field_id_{1};
};

}  // namespace classaccess
