// A JVMTI agent with Java threads that copy bytes by memmove, now and then out of the heap, mostly
// elsewhere, in native state. Three times a second each gets a SIGPROF and sleeps 300 ms in the
// handler, wherever it was. Says at the end how often.
#include <errno.h>
#include <jvmti.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atomic>

namespace {

std::atomic<bool> g_stop{false};
std::atomic<long> g_signals{0};
pthread_t g_sender;

void on_prof(int) {
  int saved_errno = errno;
  g_signals.fetch_add(1, std::memory_order_relaxed);
  timespec left = {0, 300000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  errno = saved_errno;
}

constexpr int kCopiers = 4;
JavaVM* g_vm;
pthread_t g_copiers[kCopiers];

void* copy(void*) {
  JNIEnv* jni = nullptr;
  if (g_vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&jni), nullptr) != JNI_OK) abort();
  constexpr jsize kBytes = 64;
  jbyteArray array = jni->NewByteArray(kBytes);
  jbyte here[kBytes] = {}, there[kBytes];
  void* (*volatile move)(void*, const void*, size_t) = memmove;
  while (!g_stop.load(std::memory_order_relaxed)) {
    for (int i = 0; i < 10; ++i) jni->GetByteArrayRegion(array, 0, kBytes, here);
    for (int i = 0; i < 100000; ++i) move(there, here, kBytes);
  }
  g_vm->DetachCurrentThread();
  return nullptr;
}

void* send(void*) {
  while (!g_stop.load(std::memory_order_relaxed)) {
    for (pthread_t copier : g_copiers) pthread_kill(copier, SIGPROF);
    timespec pause = {0, 350000000};
    nanosleep(&pause, nullptr);
  }
  return nullptr;
}

void JNICALL vm_init(jvmtiEnv*, JNIEnv*, jthread) {
  struct sigaction action {};
  action.sa_handler = on_prof;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  for (pthread_t& copier : g_copiers) {
    if (pthread_create(&copier, nullptr, copy, nullptr) != 0) abort();
  }
  if (pthread_create(&g_sender, nullptr, send, nullptr) != 0) abort();
}

void JNICALL vm_death(jvmtiEnv*, JNIEnv*) {
  g_stop.store(true);
  pthread_join(g_sender, nullptr);
  for (pthread_t copier : g_copiers) pthread_join(copier, nullptr);
  signal(SIGPROF, SIG_IGN);
  fprintf(stderr, "CHECK signals=%ld\n", g_signals.load());
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char*, void*) {
  g_vm = vm;
  jvmtiEnv* jvmti = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  jvmtiEventCallbacks callbacks;
  memset(&callbacks, 0, sizeof(callbacks));
  callbacks.VMInit = vm_init;
  callbacks.VMDeath = vm_death;
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}
