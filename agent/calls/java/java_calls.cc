#include "agent/calls/java/java_calls.h"

#include <string.h>

#include <algorithm>
#include <new>

#include "agent/base/raw_log.h"
#include "agent/calls/call_core.h"
#include "agent/calls/java/class_rewriter.h"
#include "agent/calls/java/virtual_calls.h"
#include "agent/fault/fault_handler.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {

std::atomic<JavaCalls*> g_java_calls{nullptr};
std::atomic<bool> JavaCalls::keeps_wrappers_{false};

namespace {

// The number of no function: the tool's own cost is measured with it. Nobody looks at its statistics.
constexpr jint kMeasured = 0;

// Numbers of functions are never used again: a call of an earlier recording that is still under way ends without a
// word.
bool is_of_now(jint id) { return static_cast<uint32_t>(id) >= g_first_call_function.load(std::memory_order_relaxed); }

// The CallThread for which everything is known to be in order, in the recording whose first function this is.
__thread CallThread* t_ready __attribute__((tls_model("initial-exec")));
__thread uint32_t t_ready_in __attribute__((tls_model("initial-exec")));

// Whether a call of the current thread is to be timed; then its CallThread is the right one, and has its number.
bool make_ready(bool entering) {
  ThreadState* state = FaultHandler::this_thread();
  if (state == nullptr) state = FaultHandler::adopt_this_thread(true);
  if (state == nullptr || state->choice.load(std::memory_order_relaxed) == ThreadChoice::kExcluded) return false;
  const bool carrier = state->kind == ThreadKind::kCarrier;
  if (carrier && !choose_call_thread(state, entering)) return false;
  CallThread* thread = call_thread();
  if (thread == nullptr) return false;
  if (thread->thread_id.load(std::memory_order_relaxed) == 0) {
    thread->thread_id.store(state->thread_id, std::memory_order_release);
  }
  if (!carrier && state->choice.load(std::memory_order_relaxed) == ThreadChoice::kRecorded) {
    t_ready = thread;
    t_ready_in = g_first_call_function.load(std::memory_order_relaxed);
  }
  return true;
}

inline bool observed(bool entering) {
  const bool ready = t_ready != nullptr && t_ready == t_call_thread &&
                     t_ready_in == g_first_call_function.load(std::memory_order_relaxed);
  return ready || make_ready(entering);
}

// Of the caller's frame, as call_enter_java wants it.
inline uint64_t stack_here(void* frame) {
  return t_call_thread->virtual_id == 0 ? reinterpret_cast<uint64_t>(frame) : 0;
}

void JNICALL enter(JNIEnv*, jclass, jint id) {
  if ((t_agent_depth != 0 || !is_of_now(id)) && id != kMeasured) return;
  if (observed(true)) call_enter_java(static_cast<uint32_t>(id), stack_here(__builtin_frame_address(0)));
}

inline void end(jint id, EndedBy ended_by, void* frame) {
  if ((t_agent_depth != 0 || !is_of_now(id)) && id != kMeasured) return;
  if (observed(false)) call_leave_java(static_cast<uint32_t>(id), ended_by, stack_here(frame));
}

void JNICALL leave(JNIEnv*, jclass, jint id) { end(id, EndedBy::kReturn, __builtin_frame_address(0)); }

void JNICALL thrown(JNIEnv*, jclass, jint id) { end(id, EndedBy::kException, __builtin_frame_address(0)); }

__thread bool t_binding __attribute__((tls_model("initial-exec"))) = false;  // define_probe is under way
bool g_bound = false;

std::string with_dots(std::string_view name) {
  std::string dotted(name);
  for (char& c : dotted) c = c == '/' ? '.' : c;
  return dotted;
}

// A type of a descriptor as it is written in Java; *at behind it.
std::string type_name(std::string_view descriptor, size_t* at) {
  size_t dimensions = 0;
  while (*at < descriptor.size() && descriptor[*at] == '[') ++dimensions, ++*at;
  std::string name;
  switch (*at < descriptor.size() ? descriptor[(*at)++] : '\0') {
    case 'B': name = "byte"; break;
    case 'C': name = "char"; break;
    case 'D': name = "double"; break;
    case 'F': name = "float"; break;
    case 'I': name = "int"; break;
    case 'J': name = "long"; break;
    case 'S': name = "short"; break;
    case 'Z': name = "boolean"; break;
    case 'V': name = "void"; break;
    case 'L': {
      size_t end = std::min(descriptor.find(';', *at), descriptor.size());
      name = with_dots(descriptor.substr(*at, end - *at));
      *at = end + 1;
      break;
    }
    default: break;
  }
  while (dimensions-- > 0) name += "[]";
  return name;
}

// `com.acme.Order.total`; with its types if another method of the class has the name.
std::string function_name(std::string_view class_name, const MethodOfClass& method) {
  std::string name = with_dots(class_name) + "." + std::string(method.name);
  if (!method.overloaded) return name;
  constexpr uint16_t kBridge = 0x0040;
  size_t at = 1;
  name += "(";
  while (at < method.descriptor.size() && method.descriptor[at] != ')') {
    if (at > 1) name += ", ";
    name += type_name(method.descriptor, &at);
  }
  name += ")";
  ++at;
  if ((method.access & kBridge) != 0) name += " " + type_name(method.descriptor, &at);
  return name;
}

const char* error_name(jvmtiError error) {
  switch (error) {
    case JVMTI_ERROR_FAILS_VERIFICATION: return "it fails verification";
    case JVMTI_ERROR_INVALID_CLASS_FORMAT: return "it is malformed";
    case JVMTI_ERROR_UNMODIFIABLE_CLASS: return "it cannot be changed";
    case JVMTI_ERROR_OUT_OF_MEMORY: return "out of memory";
    case JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_ADDED:
    case JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_DELETED: return "another agent has changed its methods";
    default: return "the JVM refuses";
  }
}

}  // namespace

// The methods of one class that is loaded or retransformed.
class JavaCalls::Methods : public TimedMethods {
 public:
  Methods(JavaCalls* owner, const char* class_name, bool loaded_already)
      : owner_(owner), class_name_(class_name), loaded_already_(loaded_already) {}

  // Of a class that is loaded already: native methods that have a wrapper.
  void find_wrapped(jvmtiEnv* jvmti, jclass klass) {
    jint count = 0;
    JvmtiMemory<jmethodID> methods(jvmti);
    if (jvmti->GetClassMethods(klass, &count, methods.out()) != JVMTI_ERROR_NONE) return;
    for (jint i = 0; i < count; ++i) {
      JvmtiMemory<char> name(jvmti), signature(jvmti);
      if (jvmti->GetMethodName(methods[i], name.out(), signature.out(), nullptr) != JVMTI_ERROR_NONE) continue;
      std::string_view text = name.get();
      if (!text.starts_with(kNativePrefix)) continue;
      text.remove_prefix(sizeof(kNativePrefix) - 1);
      wrapped_.insert(std::string(text) + signature.get());
    }
  }
  bool any_wrapped() const { return !wrapped_.empty(); }
  bool wraps() const { return wraps_; }

  uint32_t choose(const MethodOfClass& method) override {
    if (!owner_->active_.load(std::memory_order_acquire)) return 0;
    if (!owner_->patterns_.matches(class_name_, method.name)) return 0;
    const uint32_t function = owner_->function_of(function_name(class_name_, method), loaded_already_);
    if (function == 0) return 0;
    if (method.intrinsic) {
      refuse(function, "compilers have code of their own in place of calls of it (@IntrinsicCandidate)");
      return 0;
    }
    return function;
  }

  bool wrapped(const MethodOfClass& method, uint32_t id) override {
    const bool wrap =
        loaded_already_ ? wrapped_.count(std::string(method.name).append(method.descriptor)) != 0 : id != 0;
    wraps_ |= wrap;
    return wrap;
  }

  void refuse(uint32_t id, const std::string& why) override {
    CallFunction& function = g_call_functions.row(id);
    const char* none = nullptr;
    char* text = strdup(why.c_str());
    if (!function.refused.compare_exchange_strong(none, text)) free(text);
  }

 private:
  JavaCalls* owner_;
  std::string_view class_name_;
  bool loaded_already_;
  bool wraps_ = false;
  std::set<std::string> wrapped_;  // name and descriptor
};

void JavaCalls::want(jvmtiCapabilities* wanted) {
  wanted->can_retransform_classes = 1;
  wanted->can_retransform_any_class = 1;
  wanted->can_set_native_method_prefix = 1;
  wanted->can_generate_all_class_hook_events = 1;
}

void JavaCalls::choose(const std::vector<std::string>& items) {
  for (const std::string& item : items) (void)patterns_.add(item);
}

uint32_t JavaCalls::function_of(const std::string& name, bool loaded_already) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto [at, is_new] = functions_.try_emplace(name, 0);
  if (is_new) {
    at->second =
        add_call_function(FunctionKind::kJava, loaded_already ? Loaded::kAlready : Loaded::kLater, name.c_str(), "", 0);
  }
  return at->second;
}

// HotSpot warns on standard output when natives of the JDK's own modules are registered and the Java code that does so
// is none of the JDK's (jni.cpp, jni_RegisterNatives). So it is done in the ClassPrepare event, below Class.forName.
void JavaCalls::class_prepared(JNIEnv* jni, jclass klass) {
  if (!t_binding) return;
  t_binding = false;
  char enter_name[] = "enter", leave_name[] = "leave", thrown_name[] = "thrown", descriptor[] = "(I)V";
  const JNINativeMethod natives[] = {{enter_name, descriptor, reinterpret_cast<void*>(enter)},
                                     {leave_name, descriptor, reinterpret_cast<void*>(leave)},
                                     {thrown_name, descriptor, reinterpret_cast<void*>(thrown)}};
  g_bound = jni->RegisterNatives(klass, natives, 3) == JNI_OK;
}

// The cheapest of some thousand calls at a time is what a call costs once its caller is compiled.
void JavaCalls::measure(JNIEnv* jni) {
  constexpr jint kTimes = 4000;
  constexpr int kRounds = 60, kRoundsOfWarmUp = 20;
  jclass probe = jni->FindClass(kProbeClass);
  jmethodID measured = probe != nullptr ? jni->GetStaticMethodID(probe, "measure", "(II)V") : nullptr;
  jni->ExceptionClear();
  CallThread* thread = call_thread();
  if (measured == nullptr || thread == nullptr) return;
  g_java_call_cost = {};
  CallCost best{UINT64_MAX, UINT64_MAX};
  const bool on = g_calls_on.exchange(true, std::memory_order_relaxed);
  for (int round = 0; round < kRounds; ++round) {
    const CallStat* stat = thread->stat(kMeasured);
    const uint64_t total = stat != nullptr ? stat->total : 0, start = call_ticks();
    jni->CallStaticVoidMethod(probe, measured, kTimes, kMeasured);
    const uint64_t took = call_ticks() - start;
    stat = thread->stat(kMeasured);
    if (stat == nullptr || round < kRoundsOfWarmUp) continue;
    best.inside = std::min(best.inside, (stat->total - total) / kTimes);
    best.whole = std::min(best.whole, took / kTimes);
  }
  // Compiled like the other two, or its frame would be another's: stack addresses would not compare (call_enter_java).
  constexpr int kUntilCompiled = 20000;
  jmethodID rare = jni->GetStaticMethodID(probe, "thrown", "(I)V");
  for (int i = 0; rare != nullptr && i < kUntilCompiled; ++i) jni->CallStaticVoidMethod(probe, rare, kMeasured);
  g_calls_on.store(on, std::memory_order_relaxed);
  jni->DeleteLocalRef(probe);
  if (best.whole != UINT64_MAX) g_java_call_cost = best;
  raw_log(LogLevel::kInfo, "calls: a timed Java method costs %lu ps, of which %lu ps are inside its time",
          call_ns(g_java_call_cost.whole * 1000), call_ns(g_java_call_cost.inside * 1000));
}

std::string JavaCalls::define_probe(jvmtiEnv* jvmti, JNIEnv* jni) {
  if (!g_bound) {
    constexpr char kRefused[] = "the JVM refuses the class that changed methods call";
    const std::vector<uint8_t> bytes = probe_class();
    jclass probe = jni->DefineClass(kProbeClass, nullptr, reinterpret_cast<const jbyte*>(bytes.data()),
                                    static_cast<jsize>(bytes.size()));
    jni->ExceptionClear();
    if (probe == nullptr) return kRefused;
    jni->DeleteLocalRef(probe);
    jclass classes = jni->FindClass("java/lang/Class");
    jmethodID for_name =
        jni->GetStaticMethodID(classes, "forName", "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;");
    jstring name = jni->NewStringUTF(with_dots(kProbeClass).c_str());
    t_binding = true;
    jobject found = jni->CallStaticObjectMethod(classes, for_name, name, JNI_TRUE, nullptr);
    t_binding = false;
    jni->ExceptionClear();
    for (jobject local : {found, static_cast<jobject>(name), static_cast<jobject>(classes)}) jni->DeleteLocalRef(local);
    if (!g_bound) return kRefused;
  }
  if (jvmti->SetNativeMethodPrefix(kNativePrefix) != JVMTI_ERROR_NONE) {
    raw_log(LogLevel::kWarn, "the JVM refuses a prefix for native methods: those of Java classes are not timed");
  }
  return "";
}

std::vector<jclass> JavaCalls::loaded_classes(jvmtiEnv* jvmti, JNIEnv* jni, bool only_changed) const {
  std::vector<jclass> chosen;
  jint count = 0;
  JvmtiMemory<jclass> classes(jvmti);
  if (jvmti->GetLoadedClasses(&count, classes.out()) != JVMTI_ERROR_NONE) return chosen;
  for (jint i = 0; i < count; ++i) {
    JvmtiMemory<char> signature(jvmti);
    jboolean modifiable = JNI_FALSE;
    std::string_view name;
    if (jvmti->GetClassSignature(classes[i], signature.out(), nullptr) == JVMTI_ERROR_NONE) name = signature.get();
    if (name.size() > 2 && name.front() == 'L') name = name.substr(1, name.size() - 2);
    const bool fits = only_changed ? changed_.count(std::string(name)) != 0 : patterns_.matches_class(name);
    if (fits && jvmti->IsModifiableClass(classes[i], &modifiable) == JVMTI_ERROR_NONE && modifiable == JNI_TRUE) {
      chosen.push_back(classes[i]);
    } else {
      jni->DeleteLocalRef(classes[i]);
    }
  }
  return chosen;
}

// All at once; if the JVM refuses, it says not which: one by one.
void JavaCalls::retransform(jvmtiEnv* jvmti, JNIEnv* jni, const std::vector<jclass>& classes) {
  if (classes.empty()) return;
  if (jvmti->RetransformClasses(static_cast<jint>(classes.size()), classes.data()) != JVMTI_ERROR_NONE) {
    for (jclass klass : classes) {
      const jvmtiError error = jvmti->RetransformClasses(1, &klass);
      if (error == JVMTI_ERROR_NONE) continue;
      JvmtiMemory<char> signature(jvmti);
      if (jvmti->GetClassSignature(klass, signature.out(), nullptr) != JVMTI_ERROR_NONE) continue;
      raw_log(LogLevel::kWarn, "calls: the methods of %s are not timed: %s (JVMTI error %d)", signature.get(),
              error_name(error), error);
    }
  }
  for (jclass klass : classes) jni->DeleteLocalRef(klass);
}

std::string JavaCalls::prepare(jvmtiEnv* jvmti, JNIEnv* jni) {
  std::string problem = define_probe(jvmti, jni);
  if (problem.empty()) measure(jni);
  return problem;
}

std::string JavaCalls::start(jvmtiEnv* jvmti, JNIEnv* jni) {
  g_java_calls.store(this, std::memory_order_release);
  active_.store(true, std::memory_order_release);
  if (jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, nullptr) != JVMTI_ERROR_NONE) {
    active_.store(false, std::memory_order_release);
    return "the JVM refuses the class-load hook";
  }
  retransform(jvmti, jni, loaded_classes(jvmti, jni, false));
  return "";
}

void JavaCalls::stop(jvmtiEnv* jvmti, JNIEnv* jni) {
  if (!active_.exchange(false, std::memory_order_acq_rel)) return;
  retransform(jvmti, jni, loaded_classes(jvmti, jni, true));
  // Classes with a wrapped native method keep the wrapper whenever they are retransformed.
  if (!keeps_wrappers_.load(std::memory_order_relaxed)) {
    jvmti->SetEventNotificationMode(JVMTI_DISABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, nullptr);
  }
}

void JavaCalls::class_file_loaded(jvmtiEnv* jvmti, JNIEnv*, jclass redefined, const char* name, jint length,
                                  const unsigned char* bytes, jint* new_length, unsigned char** new_bytes) {
  if (name == nullptr || length <= 0 || strcmp(name, kProbeClass) == 0) return;
  AgentScope scope;
  const bool active = active_.load(std::memory_order_acquire);
  Methods methods(this, name, redefined != nullptr);
  if (redefined != nullptr && keeps_wrappers_.load(std::memory_order_acquire)) methods.find_wrapped(jvmti, redefined);
  if (!methods.any_wrapped() && !(active && patterns_.matches_class(name))) return;
  std::vector<uint8_t> changed;
  try {
    changed = rewrite_class({bytes, static_cast<size_t>(length)}, &methods);
    if (changed.empty()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    changed_.insert(name);
    if (methods.wraps()) keeps_wrappers_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    raw_log(LogLevel::kWarn, "calls: no memory to change %s, its methods are not timed", name);
    return;
  }
  unsigned char* memory = nullptr;
  if (jvmti->Allocate(static_cast<jlong>(changed.size()), &memory) != JVMTI_ERROR_NONE) return;
  memcpy(memory, changed.data(), changed.size());
  *new_bytes = memory;
  *new_length = static_cast<jint>(changed.size());
}

}  // namespace classaccess
