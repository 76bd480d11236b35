// The Recording's threads: which are recorded, their names, when they are armed.
#include <string.h>
#include <sys/syscall.h>

#include <vector>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/fault/java_thread.h"
#include "agent/fault/probed_access.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/jvmti/recording.h"
#include "agent/pages/page_trap.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {
namespace {

// The bytes of `text`, modified UTF-8, of which at most `room` are kept: no half character, and of the
// two three-byte halves of a supplementary one both or none (JVM specification 4.4.7).
size_t whole_characters(const char* text, size_t room) {
  size_t length = strnlen(text, room + 1);
  if (length <= room) return length;
  length = room;
  auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  while (length > 0 && (byte(length) & 0xc0) == 0x80) --length;
  bool second_half = byte(length) == 0xed && (byte(length + 1) & 0xf0) == 0xb0;
  return second_half && length >= 3 ? length - 3 : length;
}

// Two threads may name one state: its own at ThreadEnd, and the one that adopts it. An
// odd version belongs to who made it odd.
void set_name(ThreadState* state, uint32_t thread_id, const char* name) {
  uint32_t version = state->name_version.load(std::memory_order_relaxed);
  while (version % 2 != 0 ||
         !state->name_version.compare_exchange_weak(version, version + 1, std::memory_order_acq_rel)) {
    if (version % 2 != 0) {
      raw_sleep(10000);
      version = state->name_version.load(std::memory_order_relaxed);
    }
  }
  std::atomic_thread_fence(std::memory_order_release);
  bool still_his = state->thread_id == thread_id;
  if (still_his) {
    size_t length = whole_characters(name, sizeof(state->name) - 1);
    memcpy(state->name, name, length);
    state->name[length] = '\0';
  }
  state->name_version.store(still_his ? version + 2 : version, std::memory_order_release);
}

// The class of `object` or the super class of it that has this signature; nullptr if
// there is none. No class loader is asked: FindClass would call the application's.
jclass class_named(jvmtiEnv* jvmti, JNIEnv* jni, jobject object, const char* signature) {
  jclass klass = jni->GetObjectClass(object);
  while (klass != nullptr) {
    JvmtiMemory<char> own(jvmti);
    if (jvmti->GetClassSignature(klass, own.out(), nullptr) == JVMTI_ERROR_NONE && strcmp(own.get(), signature) == 0) {
      return klass;
    }
    jclass super = jni->GetSuperclass(klass);
    jni->DeleteLocalRef(klass);
    klass = super;
  }
  return nullptr;
}

// Carriers of virtual threads are jdk.internal.misc.CarrierThread (21 and later).
bool is_carrier(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  jclass carrier = class_named(jvmti, jni, thread, "Ljdk/internal/misc/CarrierThread;");
  if (carrier != nullptr) jni->DeleteLocalRef(carrier);
  return carrier != nullptr;
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
  uint32_t thread_id = state->thread_id;
  jvmtiThreadInfo info;
  memset(&info, 0, sizeof(info));
  if (jvmti_->GetThreadInfo(thread, &info) != JVMTI_ERROR_NONE) return;
  set_name(state, thread_id, info.name);
  ThreadChoice undecided = ThreadChoice::kUndecided;
  // Virtual threads are chosen by their own names.
  ThreadChoice no = state->kind == ThreadKind::kCarrier ? ThreadChoice::kVirtualOnly : ThreadChoice::kExcluded;
  state->choice.compare_exchange_strong(undecided, wants(info.name) ? ThreadChoice::kRecorded : no,
                                        std::memory_order_acq_rel);
  jvmti_->Deallocate(reinterpret_cast<unsigned char*>(info.name));
  if (info.thread_group != nullptr) jni->DeleteLocalRef(info.thread_group);
  if (info.context_class_loader != nullptr) jni->DeleteLocalRef(info.context_class_loader);
}

void Recording::thread_started(JNIEnv* jni, jthread thread) {
  if (!begun_ || g_recording.load(std::memory_order_relaxed) != RecordingState::kOn) return;
  if (t_agent_depth != 0) return;  // the control thread, attached for a request
  AgentScope scope;
  FaultHandler::unblock_signals();
  fields_.retry(jni);
  ThreadState* state = FaultHandler::adopt_this_thread(true);
  if (state == nullptr) return scope.leave(false);
  if (layout_.jdk_major >= 21 && is_carrier(jvmti_, jni, thread)) state->kind = ThreadKind::kCarrier;
  name_thread(jni, thread, state);
  bool wanted = state->choice.load(std::memory_order_relaxed) != ThreadChoice::kExcluded;
  if (state->choice.load(std::memory_order_relaxed) == ThreadChoice::kExcluded) {
    ProbedAccess::forget_this_thread();
  } else {
    g_probed.mounted(state, false);
  }
  // A thread started by an armed one is born armed: every allocation of it was seen.
  if (wanted && !scope.was_armed() && options_.mode == Mode::kAccess) FaultHandler::note_own_tlab();
  scope.leave(wanted);
}

void Recording::thread_ended(JNIEnv* jni, jthread thread) {
  if (!begun_) return;
  AgentScope scope;
  fields_.retry(jni);
  if (ThreadState* state = FaultHandler::this_thread(); state != nullptr) name_thread(jni, thread, state);
  leave_page_window();
  FaultHandler::retire_this_thread();
  scope.leave(false);
  wake_writer();
}

// The JavaThread behind a java.lang.Thread; 0 if it does not run. *thread_class is filled at
// the first call with a local reference of the caller's.
uint64_t Recording::java_thread_of(JNIEnv* jni, jthread thread, jclass* thread_class) const {
  if (*thread_class == nullptr) *thread_class = class_named(jvmti_, jni, thread, "Ljava/lang/Thread;");
  jfieldID eetop = *thread_class != nullptr ? jni->GetFieldID(*thread_class, "eetop", "J") : nullptr;
  if (eetop == nullptr) {
    jni->ExceptionClear();
    return 0;
  }
  return static_cast<uint64_t>(jni->GetLongField(thread, eetop));
}

void Recording::adopt_existing_threads(JNIEnv* jni, jthread current) {
  jclass thread_class = nullptr;
  if (java_thread_of(jni, current, &thread_class) == 0) {
    raw_log(LogLevel::kWarn, "java.lang.Thread has no field eetop: threads older than the recording have no names");
    return;
  }
  jint count = 0;
  JvmtiMemory<jthread> threads(jvmti_);
  if (jvmti_->GetAllThreads(&count, threads.out()) != JVMTI_ERROR_NONE) return;
  std::vector<int32_t> armed(static_cast<size_t>(count), 0);
  for (jint i = 0; i < count; ++i) {
    if (jni->IsSameObject(threads[i], current)) continue;
    uint64_t java_thread = java_thread_of(jni, threads[i], &thread_class);
    uint64_t os_thread = 0;
    int32_t tid = 0;
    if (java_thread == 0 || !safe_load(java_thread + layout_.java_thread_osthread, &os_thread) ||
        !safe_load(os_thread + layout_.osthread_thread_id, &tid)) {
      continue;
    }
    // With mprotect it is armed already, but may not touch the heap for a long time.
    if (FaultHandler::arm_other_thread(tid)) armed[static_cast<size_t>(i)] = tid;
  }
  // They claim their own states in the signal handler; then they can be named. Many busy ones
  // take turns on a few processors.
  int tries_left = 100000;
  for (jint i = 0; i < count; ++i) {
    const int32_t tid = armed[static_cast<size_t>(i)];
    if (tid == 0) continue;
    ThreadState* state = nullptr;
    while (state == nullptr && tries_left-- > 0) {
      threads_.for_each([&](ThreadState& candidate) {
        if (candidate.tid == tid && candidate.phase.load(std::memory_order_acquire) == ThreadPhase::kLive) {
          state = &candidate;
        }
      });
      // Gone meanwhile?
      if (state == nullptr && raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid), tid, 0) != 0) break;
      if (state == nullptr) raw_sleep(100000);
    }
    if (state == nullptr) continue;
    // Before its name decides whether it is wanted: a carrier's does not decide alone.
    if (layout_.jdk_major >= 21 && is_carrier(jvmti_, jni, threads[i])) state->kind = ThreadKind::kCarrier;
    name_thread(jni, threads[i], state);
  }
  for (jint i = 0; i < count; ++i) jni->DeleteLocalRef(threads[i]);
  jni->DeleteLocalRef(thread_class);
}

}  // namespace classaccess
