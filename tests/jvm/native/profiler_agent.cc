// A sampling profiler as a JVMTI agent: SIGPROF to every thread of the process a thousand
// times a second, AsyncGetCallTrace in the handler. Says at the end how often it was called
// and how many stacks it got.
#include <dirent.h>
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

// HotSpot's forte.cpp: the structures of AsyncGetCallTrace.
struct CallFrame {
  jint bci;
  jmethodID method;
};
struct CallTrace {
  JNIEnv* env;
  jint count;
  CallFrame* frames;
};
void (*g_trace)(CallTrace*, jint, void*);

// Known before the thread is sampled: GetEnv allocates at a thread's first call, and the signal may
// have interrupted malloc.
__thread JNIEnv* t_env __attribute__((tls_model("initial-exec")));

std::atomic<bool> g_stop{false};
std::atomic<long> g_signals{0}, g_java{0}, g_stacks{0};
pthread_t g_sampler;

void on_prof(int, siginfo_t*, void* context) {
  g_signals.fetch_add(1, std::memory_order_relaxed);
  JNIEnv* env = t_env;
  if (env == nullptr) return;
  g_java.fetch_add(1, std::memory_order_relaxed);
  CallFrame frames[64];
  CallTrace trace = {env, 0, frames};
  g_trace(&trace, 64, context);
  if (trace.count > 0) g_stacks.fetch_add(1, std::memory_order_relaxed);
}

void* sample(void*) {
  sigset_t prof;
  sigemptyset(&prof);
  sigaddset(&prof, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &prof, nullptr);
  const pid_t self = static_cast<pid_t>(syscall(SYS_gettid));
  while (!g_stop.load(std::memory_order_relaxed)) {
    if (DIR* tasks = opendir("/proc/self/task")) {
      while (dirent* entry = readdir(tasks)) {
        pid_t tid = atoi(entry->d_name);
        if (tid > 0 && tid != self) syscall(SYS_tgkill, getpid(), tid, SIGPROF);
      }
      closedir(tasks);
    }
    timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
  }
  return nullptr;
}

// So that every method has its jmethodID: AsyncGetCallTrace makes none.
void JNICALL class_prepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass klass) {
  jint count = 0;
  jmethodID* methods = nullptr;
  if (jvmti->GetClassMethods(klass, &count, &methods) == JVMTI_ERROR_NONE) {
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(methods));
  }
}

void JNICALL thread_start(jvmtiEnv*, JNIEnv* jni, jthread) { t_env = jni; }

void JNICALL thread_end(jvmtiEnv*, JNIEnv*, jthread) { t_env = nullptr; }

void JNICALL class_load(jvmtiEnv*, JNIEnv*, jthread, jclass) {}

void JNICALL vm_init(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  jint count = 0;
  jclass* classes = nullptr;
  if (jvmti->GetLoadedClasses(&count, &classes) == JVMTI_ERROR_NONE) {
    for (jint i = 0; i < count; ++i) class_prepare(jvmti, jni, thread, classes[i]);
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(classes));
  }
  t_env = jni;
  struct sigaction action {};
  action.sa_sigaction = on_prof;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  if (pthread_create(&g_sampler, nullptr, sample, nullptr) != 0) abort();
}

void JNICALL vm_death(jvmtiEnv*, JNIEnv*) {
  g_stop.store(true);
  pthread_join(g_sampler, nullptr);
  signal(SIGPROF, SIG_IGN);
  fprintf(stderr, "CHECK signals=%ld\nCHECK java=%ld\nCHECK stacks=%ld\n", g_signals.load(), g_java.load(),
          g_stacks.load());
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char*, void*) {
  g_trace = reinterpret_cast<decltype(g_trace)>(dlsym(RTLD_DEFAULT, "AsyncGetCallTrace"));
  jvmtiEnv* jvmti = nullptr;
  if (g_trace == nullptr || vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  jvmtiEventCallbacks callbacks;
  memset(&callbacks, 0, sizeof(callbacks));
  callbacks.VMInit = vm_init;
  callbacks.VMDeath = vm_death;
  callbacks.ClassPrepare = class_prepare;
  callbacks.ClassLoad = class_load;
  callbacks.ThreadStart = thread_start;
  callbacks.ThreadEnd = thread_end;
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_CLASS_LOAD,
                           JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}
