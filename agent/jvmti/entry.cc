// The agent's entry points and JVMTI callbacks; they forward to the Recording.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jvmti.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "agent/base/raw_log.h"
#include "agent/calls/java/java_calls.h"
#include "agent/jvmti/events.h"
#include "agent/jvmti/options.h"
#include "agent/jvmti/session.h"

namespace classaccess {
namespace {

// HotSpot, the kernel and other threads keep pointers to us: never unload.
void pin_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(pin_library), &info) != 0) dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE);
}

jint refuse(const std::string& message) {
  raw_log(LogLevel::kError, "%s", message.c_str());
  return JNI_ERR;
}

// The file of log=LEVEL:FILE.
class LogFile {
 public:
  // Empty string or the reason.
  std::string open(const Options& options) {
    if (options.log_file.empty()) {
      set_log(options.log_level, 2);
      return "";
    }
    const char* path = options.log_file.c_str();
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
    int fd = ::open(path, flags | O_CREAT | O_EXCL, 0666);
    created_ = fd >= 0;
    if (fd < 0 && errno == EEXIST) fd = ::open(path, flags | O_CREAT, 0666);
    if (fd < 0) return "option 'log': cannot write '" + options.log_file + "': " + strerror(errno);
    set_log(options.log_level, fd);
    fd_ = fd;
    return "";
  }

  // The start is refused: a file that was there gets the message too, one that was not
  // is taken away; the message itself goes to standard error.
  jint refuse(const Options& options, const std::string& message) {
    if (fd_ >= 0) {
      if (created_) {
        unlink(options.log_file.c_str());
      } else {
        classaccess::refuse(message);
      }
      set_log(options.log_level, 2);
      close(fd_);
    }
    return classaccess::refuse(message);
  }

 private:
  int fd_ = -1;
  bool created_ = false;
};

void write_help() {
  std::string help = options_help();
  for (size_t at = 0; at < help.size();) {
    ssize_t n = write(2, help.data() + at, help.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
}

void JNICALL vm_init(jvmtiEnv*, JNIEnv* jni, jthread thread) { g_session.vm_init(jni, thread); }
void JNICALL vm_death(jvmtiEnv*, JNIEnv*) { g_session.vm_death(); }
void JNICALL thread_start(jvmtiEnv*, JNIEnv* jni, jthread thread) {
  g_session.recording()->thread_started(jni, thread);
}
void JNICALL thread_end(jvmtiEnv*, JNIEnv* jni, jthread thread) { g_session.recording()->thread_ended(jni, thread); }
void JNICALL class_prepare(jvmtiEnv*, JNIEnv* jni, jthread, jclass klass) {
  g_session.recording()->class_prepared(jni, klass);
}
void JNICALL class_file_load(jvmtiEnv* jvmti, JNIEnv* jni, jclass redefined, jobject, const char* name, jobject,
                             jint length, const unsigned char* bytes, jint* new_length, unsigned char** new_bytes) {
  if (JavaCalls* calls = g_java_calls.load(std::memory_order_acquire)) {
    calls->class_file_loaded(jvmti, jni, redefined, name, length, bytes, new_length, new_bytes);
  }
}
void JNICALL gc_start(jvmtiEnv*) { g_session.recording()->gc_started(); }
void JNICALL gc_finish(jvmtiEnv*) { g_session.recording()->gc_finished(); }

// Not used itself: that the event is wanted makes HotSpot record debug information for
// every instruction that may access memory (DebugNonSafepoints), on which the bytecode
// index of a compiled site rests.
void JNICALL compiled_method_load(jvmtiEnv*, jmethodID, jint, const void*, jint, const jvmtiAddrLocationMap*,
                                  const void*) {}

}  // namespace

void set_event_callbacks(jvmtiEnv* jvmti) {
  jvmtiEventCallbacks callbacks;
  memset(&callbacks, 0, sizeof(callbacks));
  callbacks.VMInit = vm_init;
  callbacks.VMDeath = vm_death;
  callbacks.ThreadStart = thread_start;
  callbacks.ThreadEnd = thread_end;
  callbacks.ClassPrepare = class_prepare;
  callbacks.ClassFileLoadHook = class_file_load;
  callbacks.GarbageCollectionStart = gc_start;
  callbacks.GarbageCollectionFinish = gc_finish;
  callbacks.CompiledMethodLoad = compiled_method_load;
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
}

namespace {

jint load(JavaVM* vm, const char* text, bool late) {
  std::string now = g_session.active();
  if (late && !now.empty()) return refuse(now);
  bool ours = !late && g_session.loaded();
  // Another copy of the library (another path) has its own globals.
  if (ours || g_control.other_in_process()) {
    if (late) return refuse("another copy of the agent is loaded in this JVM already");
    set_log(LogLevel::kWarn, 2);
    if (Recording* recording = g_session.recording()) recording->abandon_if_not_begun();
    return refuse("a recording is active in this JVM already: give -agentpath once");
  }
  Options options;
  std::string problem = parse_options(text != nullptr ? text : "", &options);
  if (!problem.empty()) return refuse(problem);
  if (options.help) {
    write_help();
    if (late) return JNI_ERR;  // nothing is recorded
    _exit(0);
  }
  LogFile log;
  problem = log.open(options);
  if (!problem.empty()) return refuse(problem);
  pin_library();
  problem = late ? g_session.attach(vm, options) : g_session.load(vm, options);
  return problem.empty() ? JNI_OK : log.refuse(options, problem);
}

}  // namespace
}  // namespace classaccess

extern "C" {

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) { return classaccess::load(vm, options, false); }

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM* vm, char* options, void*) { return classaccess::load(vm, options, true); }

}  // extern "C"
