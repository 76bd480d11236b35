// Native methods of shapes.Native: class redefinition, and threads that attach themselves.
#include <jni.h>
#include <jvmti.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>

namespace {

struct Caller {
  JavaVM* vm;
  jobject touch;
  jmethodID method;
  jint n, m;
  int number;
  int calls;
};

void* run_attached(void* argument) {
  auto* caller = static_cast<Caller*>(argument);
  char name[32];
  std::snprintf(name, sizeof(name), "native-%d", caller->number);
  for (int i = 0; i < 2; i++) {
    JavaVMAttachArgs attach = {JNI_VERSION_10, name, nullptr};
    JNIEnv* jni = nullptr;
    jint status = caller->number % 2 == 0
                      ? caller->vm->AttachCurrentThread(reinterpret_cast<void**>(&jni), &attach)
                      : caller->vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&jni), &attach);
    if (status != JNI_OK) return nullptr;
    jni->CallIntMethod(caller->touch, caller->method, caller->n + caller->number, caller->m);
    if (jni->ExceptionCheck() == JNI_FALSE) caller->calls++;
    caller->vm->DetachCurrentThread();
  }
  return nullptr;
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_shapes_Native_redefine(JNIEnv* jni, jclass, jclass type, jbyteArray file) {
  JavaVM* vm = nullptr;
  jvmtiEnv* jvmti = nullptr;
  if (jni->GetJavaVM(&vm) != JNI_OK) return -1;
  if (vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) return -1;
  jvmtiCapabilities wanted;
  std::memset(&wanted, 0, sizeof(wanted));
  wanted.can_redefine_classes = 1;
  if (jvmti->AddCapabilities(&wanted) != JVMTI_ERROR_NONE) return -2;
  jbyte* bytes = jni->GetByteArrayElements(file, nullptr);
  if (bytes == nullptr) return -3;
  jvmtiClassDefinition definition = {type, jni->GetArrayLength(file), reinterpret_cast<const unsigned char*>(bytes)};
  jint error = jvmti->RedefineClasses(1, &definition);
  jni->ReleaseByteArrayElements(file, bytes, JNI_ABORT);
  return error;
}

JNIEXPORT jint JNICALL Java_shapes_Native_retransform(JNIEnv* jni, jclass, jclass type) {
  JavaVM* vm = nullptr;
  static jvmtiEnv* jvmti = nullptr;
  if (jni->GetJavaVM(&vm) != JNI_OK) return -1;
  if (jvmti == nullptr) {
    if (vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) return -1;
    jvmtiCapabilities wanted;
    std::memset(&wanted, 0, sizeof(wanted));
    wanted.can_retransform_classes = 1;
    if (jvmti->AddCapabilities(&wanted) != JVMTI_ERROR_NONE) return -2;
  }
  return jvmti->RetransformClasses(1, &type);
}

JNIEXPORT jint JNICALL Java_shapes_Native_attach(JNIEnv* jni, jclass, jobjectArray touches, jint n, jint m) {
  JavaVM* vm = nullptr;
  if (jni->GetJavaVM(&vm) != JNI_OK) return -1;
  jclass touch = jni->FindClass("shapes/Touch");
  if (touch == nullptr) return -1;
  jmethodID method = jni->GetMethodID(touch, "touch", "(II)I");
  int calls = 0;
  for (jsize i = 0; i < jni->GetArrayLength(touches); i++) {
    jobject global = jni->NewGlobalRef(jni->GetObjectArrayElement(touches, i));
    Caller caller = {vm, global, method, n, m, i, 0};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run_attached, &caller) != 0) return -1;
    pthread_join(thread, nullptr);
    jni->DeleteGlobalRef(global);
    calls += caller.calls;
  }
  return calls;
}

}  // extern "C"
