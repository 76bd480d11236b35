// A JVMTI agent that takes 60 ms over the ClassPrepare event of start.MadeBase: an agent that is loaded later
// gets the event of a sub class, linked meanwhile by another thread, before that of the class itself.
#include <jvmti.h>
#include <string.h>
#include <unistd.h>

namespace {

void JNICALL class_prepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass klass) {
  char* signature = nullptr;
  if (jvmti->GetClassSignature(klass, &signature, nullptr) != JVMTI_ERROR_NONE) return;
  if (strcmp(signature, "Lstart/MadeBase;") == 0) usleep(60000);
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(signature));
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char*, void*) {
  jvmtiEnv* jvmti = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  jvmtiEventCallbacks callbacks{};
  callbacks.ClassPrepare = class_prepare;
  jvmti->SetEventCallbacks(&callbacks, sizeof callbacks);
  jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_CLASS_PREPARE, nullptr);
  return JNI_OK;
}
