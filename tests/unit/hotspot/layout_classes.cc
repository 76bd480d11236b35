// Classes, objects, arrays against JVMTI and JNI.
#include <cstring>
#include <vector>

#include "agent/heap/object_header.h"
#include "tests/unit/hotspot/layout_agent.h"

namespace classaccess::layout_test {
namespace {

uint64_t klass_of_mirror(jclass type) {
  return stable(type, [](uint64_t oop) {
    uint64_t klass = 0;
    safe_load(oop + static_cast<uint64_t>(g_state.layout.mirror_klass), &klass);
    return klass;
  });
}

bool is_subclass(JNIEnv* jni, jclass type, const char* of) {
  jclass super = jni->FindClass(of);
  return jni->IsAssignableFrom(type, super);
}

void check_class(JNIEnv* jni, jclass type) {
  jvmtiEnv* jvmti = g_state.jvmti;
  std::string name = class_name(type);
  if (name.size() == 1) return;  // a primitive's mirror
  ClassInfo* row = g_state.classes.find_or_add(klass_of_mirror(type));
  check(row != nullptr, "class row", name);
  if (row == nullptr) return;
  check(name == row->name, "class name", name + " read as " + row->name);
  check(g_state.classes.find(row->klass) == row && &g_state.classes.row(row->id) == row, "class found again", name);
  check(row->is_array == (name[0] == '['), "class kind", name);
  check(row->is_mirror == (name == "java/lang/Class"), "is_mirror", name);
  check(row->is_stack_chunk == (name == "jdk/internal/vm/StackChunk"), "is_stack_chunk", name);

  jboolean is_interface = false;
  jvmti->IsInterface(type, &is_interface);
  jclass super = jni->GetSuperclass(type);
  if (!is_interface && !row->is_array) {
    std::string expected = super == nullptr ? "" : class_name(super);
    std::string found = row->super_id == 0 ? "" : g_state.classes.row(row->super_id).name;
    check(expected == found, "super class", name + ": " + found + " is not " + expected);
    bool selected = (is_subclass(jni, type, "java/util/AbstractList") || is_subclass(jni, type, "java/util/Map")) &&
                    name != "java/util/HashMap";
    check(selected == row->selected, "selected", name);
  }
  jobject loader = nullptr;
  jvmti->GetClassLoader(type, &loader);
  std::string expected = loader == nullptr ? "" : class_name(jni->GetObjectClass(loader));
  std::string found = row->loader_class_id == 0 ? "" : g_state.classes.row(row->loader_class_id).name;
  check(expected == found, "loader class", name + ": " + found + " is not " + expected);
}

void check_object(JNIEnv* jni, jobject object) {
  std::string name = class_name(jni->GetObjectClass(object));
  uint64_t klass = stable(object, [](uint64_t oop) { return klass_of(g_state.layout, oop); });
  ClassInfo* row = g_state.classes.find_or_add(klass);
  check(row != nullptr && name == row->name, "object's class", name);
  if (row == nullptr) return;
  jlong expected = 0;
  g_state.jvmti->GetObjectSize(object, &expected);
  uint64_t size = stable(object, [&](uint64_t oop) { return object_size(g_state.layout, *row, oop); });
  const char* kind = row->is_stack_chunk ? "size of StackChunk"
                     : row->is_mirror    ? "size of mirror"
                     : row->is_array     ? "size of array"
                                         : "size of instance";
  check(size == static_cast<uint64_t>(expected), kind, name + " " + std::to_string(size));
  check_space_of(oop_of(object), size, size > (16u << 20));
  bool plausible = stable(object, [](uint64_t oop) {
    uint64_t mark = 0;
    return safe_load(oop, &mark) && mark_is_plausible(mark, g_state.layout);
  });
  check(plausible, "mark word", name);
  if (row->is_array && name.size() == 2 && jni->GetArrayLength(static_cast<jarray>(object)) > 0) {
    void* elements = jni->GetPrimitiveArrayCritical(static_cast<jarray>(object), nullptr);
    uint64_t at = stable(object, [&](uint64_t oop) { return reinterpret_cast<uint64_t>(elements) - oop; });
    jni->ReleasePrimitiveArrayCritical(static_cast<jarray>(object), elements, JNI_ABORT);
    check(at == array_base(row->layout_helper), "array base", name + " " + std::to_string(at));
  }
}

// Every 16th object, all of the rare kinds (tagged classes), and those larger than a region.
jint JNICALL tag_some(jlong class_tag, jlong size, jlong* tag, jint, void* counter) {
  if (class_tag == 2 || size > (1 << 20) || ++*static_cast<uint64_t*>(counter) % 16 == 0) *tag = 1;
  return JVMTI_VISIT_OBJECTS;
}

}  // namespace

std::string class_name(jclass type) {
  char* signature = nullptr;
  g_state.jvmti->GetClassSignature(type, &signature, nullptr);
  std::string name = signature;
  g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(signature));
  if (name.front() == 'L') name = name.substr(1, name.size() - 2);
  // JVMTI writes a hidden class's suffix with a dot, the VM's Symbol has a plus.
  if (size_t dot = name.find('.'); dot != std::string::npos) name[dot] = '+';
  return name;
}

void check_classes(JNIEnv* jni) {
  jint count = 0;
  jclass* classes = nullptr;
  g_state.jvmti->GetLoadedClasses(&count, &classes);
  for (jint i = 0; i < count; ++i) {
    jni->PushLocalFrame(32);
    check_class(jni, classes[i]);
    jni->PopLocalFrame(nullptr);
  }
  g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(classes));
  require_checks("class name", 500);
  require_checks("loader class", 500);
  require_checks("selected", 500);
}

void check_objects(JNIEnv* jni) {
  jvmtiEnv* jvmti = g_state.jvmti;
  jclass chunk = jni->FindClass("jdk/internal/vm/StackChunk");
  if (chunk != nullptr) {
    jfieldID size = jni->GetFieldID(chunk, "size", "I");
    // The instance jfieldID holds the offset above its two low bits (share/runtime/jfieldIDWorkaround.hpp).
    g_state.layout.stack_chunk_size = static_cast<uint32_t>(reinterpret_cast<uint64_t>(size) >> 2);
    jvmti->SetTag(chunk, 2);
  }
  jni->ExceptionClear();
  jvmtiHeapCallbacks callbacks{};
  callbacks.heap_iteration_callback = tag_some;
  uint64_t counter = 0;
  jvmti->IterateThroughHeap(0, nullptr, &callbacks, &counter);
  const jlong tag = 1;
  jint count = 0;
  jobject* objects = nullptr;
  jvmti->GetObjectsWithTags(1, &tag, &count, &objects, nullptr);
  for (jint i = 0; i < count; ++i) {
    jni->PushLocalFrame(32);
    check_object(jni, objects[i]);
    jni->PopLocalFrame(nullptr);
    jni->DeleteLocalRef(objects[i]);
  }
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(objects));
  require_checks("size of instance", 1000);
  require_checks("size of array", 1000);
  require_checks("size of mirror", 50);
  require_checks("array base", 500);
  if (chunk != nullptr) require_checks("size of StackChunk", 4);
}

}  // namespace classaccess::layout_test
