#include "tests/unit/hotspot/layout_agent.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "agent/hotspot/layout_probe.h"

namespace classaccess::layout_test {

State g_state;

namespace {

struct Kind {
  uint64_t checks = 0, failures = 0, required = 0;
};
std::mutex g_lock;
std::map<std::string, Kind>& kinds() {
  static auto* all = new std::map<std::string, Kind>;
  return *all;
}

void stop(const std::string& reason) {
  std::fprintf(stderr, "FAIL %s\nlayout agent: 0 checks, 1 failures\n", reason.c_str());
  _exit(1);
}

void JNICALL on_vm_init(jvmtiEnv*, JNIEnv*, jthread) {
  State& s = g_state;
  if (std::string reason = complete_layout(&s.layout, s.vm); !reason.empty()) stop(reason);
  for (const char* pattern : {"java.util.AbstractList+", "java.util.Map+", "!java.util.HashMap"})
    s.patterns.add(pattern);
  if (!s.classes.create(&s.patterns, &s.layout)) stop("no memory for the class table");
  if (!s.methods.create(&s.classes, &s.layout)) stop("no memory for the method table");
  if (!s.code.create(&s.methods, &s.layout)) stop("no memory for the code lookup");
  if (std::getenv("LAYOUT_DUMP") != nullptr) std::fputs(dump_layout(s.layout).c_str(), stderr);
  s.jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, nullptr);
  check_spaces();
}

void JNICALL on_compiled(jvmtiEnv*, jmethodID method, jint size, const void* code, jint, const jvmtiAddrLocationMap*,
                         const void* compile_info) {
  check_compiled(method, size, code, compile_info);
}

void JNICALL on_gc_start(jvmtiEnv*) { check_spaces(); }
void JNICALL on_gc_finish(jvmtiEnv*) { check_spaces(); }

void JNICALL on_vm_death(jvmtiEnv*, JNIEnv* jni) {
  check_classes(jni);
  check_objects(jni);
  check_methods(jni);
  std::lock_guard<std::mutex> hold(g_lock);
  uint64_t checks = 0, failures = 0;
  for (auto& [name, kind] : kinds()) {
    std::fprintf(stderr, "%-28s %8lu checks %6lu failures\n", name.c_str(), kind.checks, kind.failures);
    if (kind.checks < kind.required) {
      std::fprintf(stderr, "FAIL %s: %lu checks, at least %lu expected\n", name.c_str(), kind.checks, kind.required);
      ++failures;
    }
    checks += kind.checks;
    failures += kind.failures;
  }
  std::fprintf(stderr, "layout agent: %lu checks, %lu failures\n", checks, failures);
  if (failures != 0) _exit(1);
}

}  // namespace

void check(bool ok, const char* kind, const std::string& what) {
  std::lock_guard<std::mutex> hold(g_lock);
  Kind& k = kinds()[kind];
  ++k.checks;
  if (!ok && ++k.failures <= 10) std::fprintf(stderr, "FAIL %s: %s\n", kind, what.c_str());
}

void require_checks(const char* kind, uint64_t at_least) {
  std::lock_guard<std::mutex> hold(g_lock);
  kinds()[kind].required = at_least;
}

}  // namespace classaccess::layout_test

using namespace classaccess;
using namespace classaccess::layout_test;

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char*, void*) {
  State& s = g_state;
  if (vm->GetEnv(reinterpret_cast<void**>(&s.jvmti), JVMTI_VERSION_1_2) != JNI_OK) stop("no JVMTI");
  if (std::string reason = s.vm.load(); !reason.empty()) stop(reason);
  if (std::string reason = probe_layout(&s.layout, s.vm); !reason.empty()) stop(reason);
  check(max_heap_size(s.vm) >= (1u << 20), "MaxHeapSize", std::to_string(max_heap_size(s.vm)));

  jvmtiCapabilities wanted{};
  wanted.can_tag_objects = 1;
  wanted.can_generate_compiled_method_load_events = 1;
  wanted.can_generate_garbage_collection_events = 1;
  wanted.can_get_line_numbers = 1;
  wanted.can_get_bytecodes = 1;
  s.jvmti->AddCapabilities(&wanted);
  jvmtiEventCallbacks callbacks{};
  callbacks.VMInit = on_vm_init;
  callbacks.VMDeath = on_vm_death;
  callbacks.CompiledMethodLoad = on_compiled;
  callbacks.GarbageCollectionStart = on_gc_start;
  callbacks.GarbageCollectionFinish = on_gc_finish;
  s.jvmti->SetEventCallbacks(&callbacks, sizeof callbacks);
  for (jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_GARBAGE_COLLECTION_START,
                           JVMTI_EVENT_GARBAGE_COLLECTION_FINISH}) {
    s.jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}
