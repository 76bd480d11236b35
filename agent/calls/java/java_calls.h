// Java methods of `calls=`: their bytecode calls ours at entry, return and exception.
//
// The class that it calls, java.lang.ClassaccessCalls, has native methods only and is defined at the first start; it
// lies in java.base, so that every class of every loader finds it. Classes are changed while they are loaded (JVMTI
// ClassFileLoadHook) and, if they were loaded before, by RetransformClasses; stop() retransforms them back.
// Context: start, stop: VMInit, Agent_OnAttach, the control thread; class_file_loaded: any Java thread.
#pragma once

#include <jvmti.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/calls/java/call_patterns.h"

namespace classaccess {

class JavaCalls {
 public:
  // The JVMTI capabilities that are needed.
  static void want(jvmtiCapabilities* wanted);

  // `items`: those of calls= that are not native. All are valid (CallPatterns::add).
  void choose(const std::vector<std::string>& items);
  bool wanted() const { return !patterns_.empty(); }

  // Defines the class that is called and measures what a call costs. After start_call_sink, no call is timed yet.
  // Empty string, or why no Java method can be timed.
  std::string prepare(jvmtiEnv* jvmti, JNIEnv* jni);
  // Changes the loaded classes, and from now on each that is loaded. Same result.
  std::string start(jvmtiEnv* jvmti, JNIEnv* jni);
  // Gives the classes their code back. Calls under way end in the changed code.
  void stop(jvmtiEnv* jvmti, JNIEnv* jni);

  std::vector<std::string> unmatched() const { return patterns_.unmatched(); }

  // ClassPrepare: binds the native methods of the class that is called.
  static void class_prepared(JNIEnv* jni, jclass klass);
  void class_file_loaded(jvmtiEnv* jvmti, JNIEnv* jni, jclass redefined, const char* name, jint length,
                         const unsigned char* bytes, jint* new_length, unsigned char** new_bytes);

 private:
  class Methods;
  friend class Methods;
  // Its number in g_call_functions; 0: the table is full.
  uint32_t function_of(const std::string& name, bool loaded_already);
  std::vector<jclass> loaded_classes(jvmtiEnv* jvmti, JNIEnv* jni, bool only_changed) const;
  void retransform(jvmtiEnv* jvmti, JNIEnv* jni, const std::vector<jclass>& classes);
  std::string define_probe(jvmtiEnv* jvmti, JNIEnv* jni);
  static void measure(JNIEnv* jni);

  CallPatterns patterns_;
  std::atomic<bool> active_{false};
  static std::atomic<bool> keeps_wrappers_;  // some class has a wrapped native method, of whatever recording
  std::mutex mutex_;
  std::map<std::string, uint32_t> functions_;  // by name
  std::set<std::string> changed_;              // names of classes that have our calls in them
};

extern std::atomic<JavaCalls*> g_java_calls;  // of the newest recording with Java calls; null: there was none

}  // namespace classaccess
