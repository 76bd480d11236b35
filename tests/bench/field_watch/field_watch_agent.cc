// What JVMTI alone can do, for comparison in scripts/bench: watches every field of one class and
// counts the events. Option: the class, as in FieldLoop$Pair, or the beginning of names with a `*` behind it; with
// `**` events are counted by class too, which costs more. Prints the counts on standard error at the end.
#include <jvmti.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace {

std::string g_signature;
std::atomic<long> g_loads{0};
std::atomic<long> g_stores{0};
bool g_is_prefix = false, g_by_class = false;
std::mutex g_mutex;
struct Counts {
  long loads = 0, stores = 0;
};
std::map<std::string, Counts> g_classes;  // only with g_by_class; under g_mutex

// A jfieldID alone is not enough: HotSpot's are alike for fields at the same offset.
void count(jvmtiEnv* jvmti, jclass type, long Counts::*what) {
  char* signature = nullptr;
  if (jvmti->GetClassSignature(type, &signature, nullptr) != JVMTI_ERROR_NONE) return;
  std::lock_guard<std::mutex> lock(g_mutex);
  ++(g_classes[signature].*what);
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(signature));
}

void JNICALL on_load(jvmtiEnv* jvmti, JNIEnv*, jthread, jmethodID, jlocation, jclass type, jobject, jfieldID) {
  g_loads.fetch_add(1, std::memory_order_relaxed);
  if (g_by_class) count(jvmti, type, &Counts::loads);
}

void JNICALL on_store(jvmtiEnv* jvmti, JNIEnv*, jthread, jmethodID, jlocation, jclass type, jobject, jfieldID, char,
                      jvalue) {
  g_stores.fetch_add(1, std::memory_order_relaxed);
  if (g_by_class) count(jvmti, type, &Counts::stores);
}

void JNICALL on_class_prepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass type) {
  char* signature = nullptr;
  if (jvmti->GetClassSignature(type, &signature, nullptr) != JVMTI_ERROR_NONE) return;
  const std::string name = signature;
  bool watched = g_is_prefix ? name.compare(0, g_signature.size(), g_signature) == 0 : name == g_signature;
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(signature));
  if (!watched) return;
  jint count = 0;
  jfieldID* fields = nullptr;
  if (jvmti->GetClassFields(type, &count, &fields) != JVMTI_ERROR_NONE) return;
  for (jint i = 0; i < count; i++) {
    if (jvmti->SetFieldAccessWatch(type, fields[i]) != JVMTI_ERROR_NONE ||
        jvmti->SetFieldModificationWatch(type, fields[i]) != JVMTI_ERROR_NONE) {
      std::fprintf(stderr, "field_watch: a field cannot be watched\n");
    }
  }
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(fields));
}

void JNICALL on_death(jvmtiEnv*, JNIEnv*) {
  for (const auto& [name, counts] : g_classes) {
    std::fprintf(stderr, "COUNT %s %ld %ld\n", name.c_str(), counts.loads, counts.stores);
  }
  std::fprintf(stderr, "field_watch: loads %ld stores %ld\n", g_loads.load(), g_stores.load());
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  jvmtiEnv* jvmti = nullptr;
  if (options == nullptr || vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_1_2) != JNI_OK) {
    std::fprintf(stderr, "field_watch: needs the name of a class\n");
    return JNI_ERR;
  }
  g_signature = std::string("L") + options;
  g_is_prefix = g_signature.back() == '*';
  g_by_class = g_signature.size() > 2 && g_signature.compare(g_signature.size() - 2, 2, "**") == 0;
  if (!g_is_prefix) g_signature += ';';
  while (g_signature.back() == '*') g_signature.pop_back();
  for (char& c : g_signature) {
    if (c == '.') c = '/';
  }
  jvmtiCapabilities capabilities{};
  capabilities.can_generate_field_access_events = 1;
  capabilities.can_generate_field_modification_events = 1;
  jvmtiEventCallbacks callbacks{};
  callbacks.FieldAccess = on_load;
  callbacks.FieldModification = on_store;
  callbacks.ClassPrepare = on_class_prepare;
  callbacks.VMDeath = on_death;
  if (jvmti->AddCapabilities(&capabilities) != JVMTI_ERROR_NONE ||
      jvmti->SetEventCallbacks(&callbacks, sizeof callbacks) != JVMTI_ERROR_NONE) {
    std::fprintf(stderr, "field_watch: this JVM cannot watch fields\n");
    return JNI_ERR;
  }
  for (jvmtiEvent event :
       {JVMTI_EVENT_FIELD_ACCESS, JVMTI_EVENT_FIELD_MODIFICATION, JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_VM_DEATH}) {
    if (jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr) != JVMTI_ERROR_NONE) return JNI_ERR;
  }
  return JNI_OK;
}
