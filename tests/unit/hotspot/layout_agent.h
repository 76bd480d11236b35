// A test agent: runs inside a JVM and compares what our tables read from VM memory
// with what JVMTI and JNI say about the same things. No heap is closed here, so plain
// heap addresses are read (twin_distance 0) and the safe loads never fault.
// Output on standard error: one `FAIL ...` line for each difference (the first ones of
// a kind) and a last line `layout agent: N checks, M failures`.
#pragma once

#include <jvmti.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "agent/heap/class_table.h"
#include "agent/heap/code_lookup.h"
#include "agent/heap/method_table.h"
#include "agent/heap/vm_layout.h"
#include "agent/hotspot/vm_structs.h"

namespace classaccess::layout_test {

struct State {
  jvmtiEnv* jvmti = nullptr;
  VmStructs vm;
  VmLayout layout;
  ClassPatterns patterns;
  ClassTable classes;
  MethodTable methods;
  CodeLookup code;
};
extern State g_state;

// Counts a check; prints a failure. `kind` groups checks: each must occur at least as often as required.
void check(bool ok, const char* kind, const std::string& what);
void require_checks(const char* kind, uint64_t at_least);

// The address behind a JNI local reference. The collector may move the object: see stable().
inline uint64_t oop_of(jobject handle) { return *reinterpret_cast<volatile uint64_t*>(handle); }

// Calls read(oop) until no collection moved the object meanwhile.
template <typename F>
auto stable(jobject handle, F&& read) {
  for (;;) {
    uint64_t before = oop_of(handle);
    auto result = read(before);
    if (oop_of(handle) == before) return result;
  }
}

std::string class_name(jclass type);  // as the VM has it: com/acme/Order, [I

void check_classes(JNIEnv* jni);
void check_objects(JNIEnv* jni);
void check_methods(JNIEnv* jni);
void check_spaces();
void check_space_of(uint64_t object, uint64_t size, bool large_array);

// CompiledMethodLoad: compares every record of the event with CodeLookup.
void check_compiled(jmethodID method, jint code_size, const void* code, const void* compile_info);

}  // namespace classaccess::layout_test
