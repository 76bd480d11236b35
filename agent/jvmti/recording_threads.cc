// The Recording's threads: which are recorded, their names, when they are armed.
#include <string.h>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/fault/java_thread.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/jvmti/recording.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {
namespace {

void set_name(ThreadState* state, const char* name) {
  uint32_t version = state->name_version.load(std::memory_order_relaxed);
  state->name_version.store(version + 1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_release);
  strncpy(state->name, name, sizeof(state->name) - 1);
  state->name[sizeof(state->name) - 1] = '\0';
  state->name_version.store(version + 2, std::memory_order_release);
}

// Carriers of virtual threads are jdk.internal.misc.CarrierThread (21 and later).
bool is_carrier(JNIEnv* jni, jthread thread) {
  static const char kCarrier[] = "jdk/internal/misc/CarrierThread";
  jclass carrier = jni->FindClass(kCarrier);
  if (carrier == nullptr) {
    jni->ExceptionClear();
    return false;
  }
  bool is = jni->IsInstanceOf(thread, carrier) == JNI_TRUE;
  jni->DeleteLocalRef(carrier);
  return is;
}

}  // namespace

bool Recording::wants(const char* thread_name) const {
  if (options_.threads.empty()) return true;
  for (const std::string& glob : options_.threads) {
    if (glob_matches(glob, thread_name, true)) return true;
  }
  return false;
}

void Recording::name_thread(JNIEnv* jni, jthread thread, ThreadState* state) {
  jvmtiThreadInfo info;
  memset(&info, 0, sizeof(info));
  if (jvmti_->GetThreadInfo(thread, &info) != JVMTI_ERROR_NONE) return;
  set_name(state, info.name);
  if (state->choice.load(std::memory_order_relaxed) == ThreadChoice::kUndecided) {
    state->choice.store(wants(info.name) ? ThreadChoice::kRecorded : ThreadChoice::kExcluded,
                        std::memory_order_release);
  }
  jvmti_->Deallocate(reinterpret_cast<unsigned char*>(info.name));
  if (info.thread_group != nullptr) jni->DeleteLocalRef(info.thread_group);
  if (info.context_class_loader != nullptr) jni->DeleteLocalRef(info.context_class_loader);
}

void Recording::thread_started(JNIEnv* jni, jthread thread) {
  if (!begun_ || g_recording.load(std::memory_order_relaxed) != RecordingState::kOn) return;
  AgentScope scope;
  ThreadState* state = FaultHandler::adopt_this_thread(true);
  if (state == nullptr) return scope.leave(false);
  name_thread(jni, thread, state);
  if (layout_.jdk_major >= 21 && is_carrier(jni, thread)) state->kind = ThreadKind::kCarrier;
  bool wanted = state->choice.load(std::memory_order_relaxed) == ThreadChoice::kRecorded;
  // A thread started by an armed one is born armed: every allocation of it was seen.
  if (wanted && !scope.was_armed()) FaultHandler::note_own_tlab();
  scope.leave(wanted);
}

void Recording::thread_ended(JNIEnv* jni, jthread thread) {
  if (!begun_) return;
  AgentScope scope;
  if (ThreadState* state = FaultHandler::this_thread(); state != nullptr) name_thread(jni, thread, state);
  FaultHandler::retire_this_thread();
  scope.leave(false);
  wake_writer();
}

void Recording::adopt_existing_threads(JNIEnv* jni, jthread current) {
  jclass thread_class = jni->FindClass("java/lang/Thread");
  jfieldID eetop = thread_class != nullptr ? jni->GetFieldID(thread_class, "eetop", "J") : nullptr;
  if (eetop == nullptr) {
    jni->ExceptionClear();
    raw_log(LogLevel::kWarn, "java.lang.Thread has no field eetop: threads older than VMInit are not recorded");
    return;
  }
  jint count = 0;
  JvmtiMemory<jthread> threads(jvmti_);
  if (jvmti_->GetAllThreads(&count, threads.out()) != JVMTI_ERROR_NONE) return;
  for (jint i = 0; i < count; ++i) {
    if (jni->IsSameObject(threads[i], current)) continue;
    auto java_thread = static_cast<uint64_t>(jni->GetLongField(threads[i], eetop));
    uint64_t os_thread = 0;
    int32_t tid = 0;
    if (java_thread == 0 || !safe_load(java_thread + layout_.java_thread_osthread, &os_thread) ||
        !safe_load(os_thread + layout_.osthread_thread_id, &tid)) {
      continue;
    }
    // With mprotect it is armed already, but may not touch the heap for a long time.
    if (!FaultHandler::arm_other_thread(tid)) continue;
    // It claims its own state in the signal handler; then it can be named.
    ThreadState* state = nullptr;
    for (int tries = 0; tries < 1000 && state == nullptr; ++tries) {
      threads_.for_each([&](ThreadState& candidate) {
        if (candidate.tid == tid && candidate.phase.load(std::memory_order_acquire) == ThreadPhase::kLive) {
          state = &candidate;
        }
      });
      if (state == nullptr) raw_sleep(100000);
    }
    if (state != nullptr) name_thread(jni, threads[i], state);
  }
  for (jint i = 0; i < count; ++i) jni->DeleteLocalRef(threads[i]);
  jni->DeleteLocalRef(thread_class);
}

}  // namespace classaccess
