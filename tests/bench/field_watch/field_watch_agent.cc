// What JVMTI alone can do, for comparison in scripts/bench: watches every field of one class and
// counts the events. Option: the class, as in FieldLoop$Pair. Prints the counts on standard error
// at the end.
#include <jvmti.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace {

std::string g_signature;
std::atomic<long> g_loads{0};
std::atomic<long> g_stores{0};

void JNICALL on_load(jvmtiEnv*, JNIEnv*, jthread, jmethodID, jlocation, jclass, jobject, jfieldID) {
  g_loads.fetch_add(1, std::memory_order_relaxed);
}

void JNICALL on_store(jvmtiEnv*, JNIEnv*, jthread, jmethodID, jlocation, jclass, jobject, jfieldID, char, jvalue) {
  g_stores.fetch_add(1, std::memory_order_relaxed);
}

void JNICALL on_class_prepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass type) {
  char* signature = nullptr;
  if (jvmti->GetClassSignature(type, &signature, nullptr) != JVMTI_ERROR_NONE) return;
  bool watched = g_signature == signature;
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
  std::fprintf(stderr, "field_watch: loads %ld stores %ld\n", g_loads.load(), g_stores.load());
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  jvmtiEnv* jvmti = nullptr;
  if (options == nullptr || vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_1_2) != JNI_OK) {
    std::fprintf(stderr, "field_watch: needs the name of a class\n");
    return JNI_ERR;
  }
  g_signature = std::string("L") + options + ";";
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
