// What outlives a recording: the JVMTI environment, the control thread, and which recording
// is active. Starts and ends recordings, one at a time.
// Context: Agent_OnLoad, OnAttach, VMInit, VMDeath and the control thread.
#pragma once

#include <jvmti.h>

#include <atomic>
#include <mutex>
#include <string>

#include "agent/jvmti/control_thread.h"
#include "agent/jvmti/options.h"
#include "agent/jvmti/recording.h"

namespace classaccess {

class Session {
 public:
  // Agent_OnLoad, options parsed. Empty string or why the JVM must not start.
  std::string load(JavaVM* vm, const Options& options);
  // Agent_OnAttach: starts a recording, or with start=manual only the control thread.
  std::string attach(JavaVM* vm, const Options& options);

  void vm_init(JNIEnv* jni, jthread current);
  void vm_death();

  // The newest recording; null: there was none yet. Callbacks forward to it.
  Recording* recording() const { return recording_.load(std::memory_order_acquire); }
  // Agent_OnLoad has succeeded.
  bool loaded() const { return loaded_; }
  // Empty: none is. Else which and since when.
  std::string active() const;

 private:
  static ControlAnswer carry(ControlCommand command, const std::string& arguments);
  ControlAnswer status() const;
  ControlAnswer snapshot();
  ControlAnswer start(const std::string& text);
  ControlAnswer stop(bool detach);

  std::string environment(JavaVM* vm);
  std::string start_late(JNIEnv* jni, const Options& options);

  mutable std::mutex mutex_;
  JavaVM* vm_ = nullptr;
  jvmtiEnv* jvmti_ = nullptr;
  Options options_;  // of the newest recording, or those given at load
  std::atomic<Recording*> recording_{nullptr};
  bool loaded_ = false;
  bool ended_ = false;  // VMDeath
};

extern Session g_session;

}  // namespace classaccess
