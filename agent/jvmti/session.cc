#include "agent/jvmti/session.h"

#include <string.h>

#include "agent/base/raw_log.h"
#include "agent/jvmti/events.h"

namespace classaccess {

Session g_session;

namespace {

// The control thread, attached to the VM while it lives.
class AttachedToVm {
 public:
  explicit AttachedToVm(JavaVM* vm) : vm_(vm) {
    char name[] = "classaccess control";
    JavaVMAttachArgs arguments = {JNI_VERSION_1_8, name, nullptr};
    void* jni = nullptr;
    if (vm->AttachCurrentThreadAsDaemon(&jni, &arguments) == JNI_OK) jni_ = static_cast<JNIEnv*>(jni);
  }
  ~AttachedToVm() {
    if (jni_ != nullptr) vm_->DetachCurrentThread();
  }
  JNIEnv* jni() const { return jni_; }
  AttachedToVm(const AttachedToVm&) = delete;
  AttachedToVm& operator=(const AttachedToVm&) = delete;

 private:
  JavaVM* vm_;
  JNIEnv* jni_ = nullptr;
};

}  // namespace

std::string Session::environment(JavaVM* vm) {
  vm_ = vm;
  if (jvmti_ != nullptr) return "";
  if (vm->GetEnv(reinterpret_cast<void**>(&jvmti_), JVMTI_VERSION_11) != JNI_OK) return "the JVM offers no JVMTI 11";
  set_event_callbacks(jvmti_);
  return "";
}

std::string Session::active() const {
  Recording* recording = this->recording();
  return recording != nullptr && recording->active() ? recording->title() : "";
}

std::string Session::load(JavaVM* vm, const Options& options) {
  options_ = options;
  std::string problem = environment(vm);
  if (!problem.empty()) return problem;
  problem = g_control.open();
  if (!problem.empty()) {
    if (options.manual) return problem;
    raw_log(LogLevel::kWarn, "%s; the classaccess command will not work", problem.c_str());
  }
  if (options.manual) {
    problem = (new Recording)->prepare_later(jvmti_, options);
    if (problem.empty()) {
      loaded_ = true;
      jvmti_->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, nullptr);
      jvmti_->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, nullptr);
      return "";
    }
  } else {
    auto* recording = new Recording;
    problem = recording->prepare(jvmti_, options);
    if (problem.empty()) {
      recording_.store(recording, std::memory_order_release);
      loaded_ = true;
      return "";
    }
  }
  g_control.close();
  return problem;
}

void Session::vm_init(JNIEnv* jni, jthread current) {
  if (Recording* recording = this->recording()) recording->begin(jni, current);
  std::string problem = g_control.start(carry);
  if (!problem.empty()) raw_log(LogLevel::kWarn, "%s: the classaccess command will not work", problem.c_str());
}

void Session::vm_death() {
  std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  g_control.close();
  if (Recording* recording = this->recording()) recording->end();
  g_control.end_live_line();
}

std::string Session::attach(JavaVM* vm, const Options& options) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string now = active();
  if (!now.empty()) return now;
  std::string problem = environment(vm);
  if (problem.empty()) problem = g_control.open();
  if (!problem.empty()) return problem;
  options_ = options;
  JNIEnv* jni = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&jni), JNI_VERSION_1_8) != JNI_OK) return "this thread is no Java thread";
  problem = options.manual ? Recording::check(options) : start_late(jni, options);
  if (problem.empty()) {
    jvmti_->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, nullptr);
    problem = g_control.start(carry);
    if (!problem.empty()) raw_log(LogLevel::kWarn, "%s: the classaccess command will not work", problem.c_str());
    return "";
  }
  g_control.close_if_idle();
  return problem;
}

std::string Session::start_late(JNIEnv* jni, const Options& options) {
  jthread current = nullptr;
  if (jvmti_->GetCurrentThread(&current) != JVMTI_ERROR_NONE) return "the JVM does not know this thread";
  auto* recording = new Recording;
  recording_.store(recording, std::memory_order_release);  // the callbacks use it
  std::string problem = recording->start_late(jvmti_, jni, current, options);
  jni->DeleteLocalRef(current);
  return problem;
}

ControlAnswer Session::carry(ControlCommand command, const std::string& arguments) {
  Session& self = g_session;
  std::lock_guard<std::mutex> lock(self.mutex_);
  if (self.ended_) return {false, "the JVM is ending"};
  switch (command) {
    case ControlCommand::kStatus: return self.status();
    case ControlCommand::kSnapshot: return self.snapshot();
    case ControlCommand::kStart: return self.start(arguments);
    case ControlCommand::kStop: return self.stop(false);
    case ControlCommand::kDetach: return self.stop(true);
    case ControlCommand::kNone: break;
  }
  return {false, "the agent does not know this command: is the classaccess command newer than the agent?"};
}

ControlAnswer Session::status() const {
  Recording* recording = this->recording();
  if (recording != nullptr && recording->active()) return {true, recording->status()};
  std::string text = "no recording is active\n";
  if (recording != nullptr) text += recording->last_words();
  return {true, text};
}

ControlAnswer Session::snapshot() {
  if (active().empty()) return {false, "no recording is active"};
  AttachedToVm attached(vm_);
  if (attached.jni() == nullptr) return {false, "the JVM refuses the control thread"};
  std::string problem = recording()->snapshot();
  return problem.empty() ? ControlAnswer{true, "written to " + recording()->database() + "\n"}
                         : ControlAnswer{false, problem};
}

ControlAnswer Session::start(const std::string& text) {
  std::string now = active();
  if (!now.empty()) return {false, now};
  if (Recording* last = recording(); last != nullptr && !last->left().empty()) return {false, last->left()};
  Options options;
  std::string problem = parse_options(text.empty() ? options_.text.c_str() : text.c_str(), &options);
  if (!problem.empty()) return {false, problem};
  if (options.help) return {false, options_help()};
  AttachedToVm attached(vm_);
  if (attached.jni() == nullptr) return {false, "the JVM refuses the control thread"};
  problem = start_late(attached.jni(), options);
  if (!problem.empty()) return {false, problem};
  options_ = options;
  return {true, "recording to " + recording()->database() + "\n"};
}

ControlAnswer Session::stop(bool detach) {
  Recording* last = recording();
  bool active = last != nullptr && last->active();
  if (!active && !detach) return {false, "no recording is active"};
  if (last != nullptr && (active || !last->left().empty())) {
    AttachedToVm attached(vm_);
    if (attached.jni() == nullptr) return {false, "the JVM refuses the control thread"};
    last->stop(attached.jni());
    if (!last->left().empty()) return {false, last->left()};
  }
  if (detach) jvmti_->SetEventNotificationMode(JVMTI_DISABLE, JVMTI_EVENT_VM_DEATH, nullptr);
  return {true, active ? "written to " + last->database() + "\n" : ""};
}

}  // namespace classaccess
