// The JNI library of java-harness/natives: what other people's libraries do with signals,
// stacks and critical arrays. Class natives.Native declares the functions.
#include <errno.h>
#include <fcntl.h>
#include <jni.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

namespace {

enum How { kSigaction, kSignal, kRaw, kReporter };

struct RawAction {
  void* handler;
  unsigned long flags;
  void* restorer;
  unsigned long mask;
};

char* g_page;
volatile int g_calls;
struct sigaction g_saved;
RawAction g_saved_raw;
volatile bool g_expecting;
sigjmp_buf g_back;

void open_page() {
  g_calls = g_calls + 1;
  mprotect(g_page, 4096, PROT_READ | PROT_WRITE);
}

bool own(const siginfo_t* info) {
  return info->si_code > 0 && static_cast<char*>(info->si_addr) >= g_page &&
         static_cast<char*>(info->si_addr) < g_page + 4096;
}

void by_sigaction(int signal, siginfo_t* info, void* context) {
  if (own(info)) return open_page();
  g_saved.sa_sigaction(signal, info, context);
}

void by_signal(int) {
  if (g_expecting) return open_page();
  static const char kText[] = "a fault that is not this library's\n";
  (void)!write(2, kText, sizeof(kText) - 1);
  _exit(98);
}

void by_raw(int signal, siginfo_t* info, void* context) {
  if (own(info)) return open_page();
  reinterpret_cast<void (*)(int, siginfo_t*, void*)>(g_saved_raw.handler)(signal, info, context);
}

// As crash reporters do: whatever comes is a crash.
void reporter(int, siginfo_t* info, void*) {
  if (own(info)) return open_page();
  static const char kText[] = "crash reported\n";
  (void)!write(2, kText, sizeof(kText) - 1);
  _exit(99);
}

void jump_back(int, siginfo_t* info, void*) {
  if (own(info)) siglongjmp(g_back, 1);
  _exit(97);
}

asm(".text\nnatives_restorer:\n mov $15, %eax\n syscall\n");
extern "C" void natives_restorer();

struct sigaction action_of(void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  return action;
}

JavaVM* g_vm;

struct Attached {
  size_t stack_bytes;
  jobject body;
  int error;
};

void* attached_main(void* argument) {
  auto* thread = static_cast<Attached*>(argument);
  void* stack = nullptr;
  if (thread->stack_bytes != 0) {
    stack = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // The system call: glibc refuses what is too small for the kernel's frame.
    stack_t wanted = {};
    wanted.ss_sp = static_cast<char*>(stack) + 32768;
    wanted.ss_size = thread->stack_bytes;
    memset(stack, 0x5a, 32768);
    if (syscall(SYS_sigaltstack, &wanted, nullptr) != 0) {
      thread->error = errno;
      return nullptr;
    }
  }
  JNIEnv* env;
  JavaVMAttachArgs arguments = {JNI_VERSION_10, const_cast<char*>("attached"), nullptr};
  if (g_vm->AttachCurrentThread(reinterpret_cast<void**>(&env), &arguments) != JNI_OK) {
    thread->error = -1;
    return nullptr;
  }
  jclass runnable = env->FindClass("java/lang/Runnable");
  env->CallVoidMethod(thread->body, env->GetMethodID(runnable, "run", "()V"));
  if (env->ExceptionCheck()) {
    env->ExceptionDescribe();
    thread->error = -2;
  }
  g_vm->DetachCurrentThread();
  if (stack != nullptr) {
    // What lies below the alternate stack is not anybody's to write to.
    for (int i = 0; i < 32768; ++i) {
      if (static_cast<unsigned char*>(stack)[i] != 0x5a) thread->error = -3;
    }
    stack_t off = {};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
    munmap(stack, 65536);
  }
  return nullptr;
}

int run_attached(JNIEnv* env, jobject body, size_t stack_bytes) {
  Attached thread = {stack_bytes, env->NewGlobalRef(body), 0};
  pthread_t id;
  if (pthread_create(&id, nullptr, attached_main, &thread) != 0) return -4;
  pthread_join(id, nullptr);
  env->DeleteGlobalRef(thread.body);
  return thread.error;
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  g_vm = vm;
  g_page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return JNI_VERSION_10;
}

JNIEXPORT void JNICALL Java_natives_Native_install(JNIEnv*, jclass, jint how, jboolean on_stack) {
  const int flags = on_stack != 0 ? SA_ONSTACK : 0;
  switch (how) {
    case kSigaction: {
      struct sigaction action = action_of(by_sigaction, flags);
      sigaction(SIGSEGV, &action, &g_saved);
      break;
    }
    case kSignal:
      // What signal() returns is not enough to put it back: HotSpot's needs SA_SIGINFO.
      sigaction(SIGSEGV, nullptr, &g_saved);
      if (reinterpret_cast<void*>(signal(SIGSEGV, by_signal)) != reinterpret_cast<void*>(g_saved.sa_sigaction)) abort();
      break;
    case kRaw: {
      RawAction action = {reinterpret_cast<void*>(by_raw), static_cast<unsigned long>(SA_SIGINFO | flags) | 0x04000000,
                          reinterpret_cast<void*>(natives_restorer), 0};
      syscall(SYS_rt_sigaction, SIGSEGV, &action, &g_saved_raw, 8);
      break;
    }
    case kReporter: {
      struct sigaction action = action_of(reporter, flags);
      sigaction(SIGSEGV, &action, &g_saved);
      break;
    }
    default: break;
  }
}

JNIEXPORT void JNICALL Java_natives_Native_uninstall(JNIEnv*, jclass, jint how) {
  if (how == kRaw) {
    syscall(SYS_rt_sigaction, SIGSEGV, &g_saved_raw, nullptr, 8);
  } else {
    sigaction(SIGSEGV, &g_saved, nullptr);
  }
}

// A fault of this library's own; how often its handler has been called for one so far.
JNIEXPORT jint JNICALL Java_natives_Native_fault(JNIEnv*, jclass) {
  mprotect(g_page, 4096, PROT_NONE);
  g_expecting = true;
  *static_cast<volatile char*>(g_page) = 1;
  g_expecting = false;
  return g_calls;
}

// Reads memory that may not be there, as libraries probe it: a handler that jumps out.
JNIEXPORT jboolean JNICALL Java_natives_Native_probe(JNIEnv*, jclass) {
  mprotect(g_page, 4096, PROT_NONE);
  struct sigaction action = action_of(jump_back, 0), before;
  sigaction(SIGSEGV, &action, &before);
  volatile bool caught = true;
  if (sigsetjmp(g_back, 1) == 0) {
    (void)*static_cast<volatile char*>(g_page);
    caught = false;
  }
  sigaction(SIGSEGV, &before, nullptr);
  return caught;
}

// Loads a field and an array with every signal blocked. The sum, or -1 if the mask is
// not what was asked for.
JNIEXPORT jlong JNICALL Java_natives_Native_blocked(JNIEnv* env, jclass, jint how, jobject cell, jintArray array) {
  sigset_t all, before, seen;
  sigfillset(&all);
  auto set = how == 0 ? pthread_sigmask : sigprocmask;
  set(SIG_SETMASK, &all, &before);
  jlong sum = env->GetIntField(cell, env->GetFieldID(env->GetObjectClass(cell), "value", "I"));
  jint elements[16];
  env->GetIntArrayRegion(array, 0, 16, elements);
  for (jint element : elements) sum += element;
  set(SIG_SETMASK, &before, &seen);
  if (sigismember(&seen, SIGSEGV) != 1 || sigismember(&seen, SIGUSR1) != 1) return -1;
  set(SIG_BLOCK, nullptr, &seen);
  return sigismember(&seen, SIGSEGV) == 0 && sigismember(&before, SIGSEGV) == 0 ? sum : -1;
}

// Runs `body` on a thread of this library's, attached to the VM, with an alternate signal
// stack of that many bytes; 0: none, -1: of AT_MINSIGSTKSZ. 0 or the reason it failed.
JNIEXPORT jint JNICALL Java_natives_Native_attached(JNIEnv* env, jclass, jint stack_bytes, jobject body) {
  size_t bytes = stack_bytes >= 0 ? static_cast<size_t>(stack_bytes) : getauxval(51);  // AT_MINSIGSTKSZ
  return run_attached(env, body, bytes);
}

// What Get and Release of a critical array promise, for each mode, nested. 0 or the number
// of the check that failed.
JNIEXPORT jint JNICALL Java_natives_Native_criticals(JNIEnv* env, jclass, jbyteArray array, jstring string,
                                                     jstring file) {
  const jsize length = env->GetArrayLength(array);
  if (length < 64) return 9;
  jbyte region[64];
  for (jint asked : {0, JNI_COMMIT, JNI_ABORT}) {
    jint mode = asked;
    jboolean copy = JNI_FALSE;
    auto* bytes = static_cast<jbyte*>(env->GetPrimitiveArrayCritical(array, &copy));
    if (bytes == nullptr) return 1;
    // HotSpot ends the critical section at a commit, and -Xcheck:jni frees its copy then; a
    // second release of one that is no copy would unlock twice.
    if (mode == JNI_COMMIT && copy == JNI_TRUE) mode = 0;
    bytes[0] = static_cast<jbyte>(10 + mode);
    bytes[length - 1] = static_cast<jbyte>(20 + mode);
    env->ReleasePrimitiveArrayCritical(array, bytes, mode);
    env->GetByteArrayRegion(array, 0, 1, region);
    env->GetByteArrayRegion(array, length - 1, 1, region + 1);
    if (mode == JNI_ABORT) continue;  // whether it was a copy is the JVM's choice
    if (region[0] != 10 + mode || region[1] != 20 + mode) return 2;
  }
  // Nested, two on one array, and a string inside.
  jboolean copy_one = 2, copy_two = 2, copy_chars = 2;
  auto* one = static_cast<jbyte*>(env->GetPrimitiveArrayCritical(array, &copy_one));
  auto* two = static_cast<jbyte*>(env->GetPrimitiveArrayCritical(array, &copy_two));
  const jchar* chars = env->GetStringCritical(string, &copy_chars);
  const bool right = chars != nullptr && chars[0] == 'k' && chars[3] == 0x20ac && copy_one <= 1 && copy_two <= 1;
  const bool shared = one == two;  // -Xcheck:jni hands out copies and says that they are none
  if (shared) one[5] = 55;
  const bool seen = !shared || two[5] == 55;
  env->ReleaseStringCritical(string, chars);
  env->ReleasePrimitiveArrayCritical(array, two, 0);
  env->ReleasePrimitiveArrayCritical(array, one, 0);
  if (!right) return 3;
  if (!seen) return 4;
  // System calls on the array itself.
  const char* path = env->GetStringUTFChars(file, nullptr);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  env->ReleaseStringUTFChars(file, path);
  if (fd < 0) return 5;
  auto* bytes = static_cast<jbyte*>(env->GetPrimitiveArrayCritical(array, nullptr));
  for (jsize i = 0; i < length; ++i) bytes[i] = static_cast<jbyte>(i * 7);
  bool written = write(fd, bytes, static_cast<size_t>(length)) == length;
  memset(bytes, 0, static_cast<size_t>(length));
  // Also by the system call itself: the address is one that the kernel takes.
  bool read_back = syscall(SYS_pread64, fd, bytes, static_cast<size_t>(length), 0L) == length;
  bool same = true;
  for (jsize i = 0; i < length; ++i) same &= bytes[i] == static_cast<jbyte>(i * 7);
  env->ReleasePrimitiveArrayCritical(array, bytes, 0);
  close(fd);
  if (!written) return 6;
  if (!read_back) return 7;
  if (!same) return 8;
  return 0;
}

}  // extern "C"
