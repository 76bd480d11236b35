#include "agent/jvmti/jni_critical.h"

#include <atomic>

#include "agent/base/counters.h"
#include "agent/base/wake.h"
#include "agent/fault/fault_handler.h"
#include "agent/jvmti/critical_copy.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

jniNativeInterface g_original;
AccessPath* g_access = nullptr;
std::atomic<bool> g_installed{false};
bool g_in_table = false;        // our functions are in the VM's
std::atomic<int64_t> g_out{0};  // translated pointers that are not released yet
constexpr int kWaitMs = 1000;

bool recording() { return g_recording.load(std::memory_order_relaxed) == RecordingState::kOn; }

uint64_t to_number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// The pointer to hand out for `elements`; all of the array is recorded as touched (how
// much of it the native code touches cannot be known). Translated also when nothing is
// recorded any more: Release cannot know.
void* hand_out(void* elements, Op op, const void* caller, jboolean* is_copy) {
  uint64_t address = to_number(elements);
  if (!g_installed.load(std::memory_order_relaxed) || !g_committed.armed(address)) return elements;
  ThreadState* thread = FaultHandler::this_thread();
  if (recording() && g_armed.armed(address) && t_agent_depth == 0 && thread != nullptr &&
      thread->choice.load(std::memory_order_relaxed) != ThreadChoice::kExcluded) {
    AgentScope scope;
    g_access->record_whole_array(thread, address, op, to_number(caller));
    count(g_counters.criticals);
  }
  if (g_twin.created()) {
    g_out.fetch_add(1, std::memory_order_relaxed);
    return g_twin.at(address);
  }
  AgentScope scope;
  void* copy = make_critical_copy(g_access->resolver, *g_access->layout, address);
  if (copy == nullptr) return elements;
  g_out.fetch_add(1, std::memory_order_relaxed);
  if (is_copy != nullptr) *is_copy = JNI_TRUE;
  return copy;
}

// The heap address behind a pointer that hand_out translated; others unchanged.
template <typename T>
T* take_back(T* pointer, bool store, bool free) {
  if (!g_twin.created()) {
    AgentScope scope;
    uint64_t elements = settle_critical_copy(pointer, store, free);
    if (elements != 0 && free) g_out.fetch_sub(1, std::memory_order_relaxed);
    return elements != 0 ? reinterpret_cast<T*>(elements) : pointer;
  }
  uint64_t address = to_number(pointer) - static_cast<uint64_t>(g_twin.distance());
  if (!g_armed.in_range(address)) return pointer;
  g_out.fetch_sub(1, std::memory_order_relaxed);
  return reinterpret_cast<T*>(address);
}

void* JNICALL get_array(JNIEnv* env, jarray array, jboolean* is_copy) {
  void* elements = g_original.GetPrimitiveArrayCritical(env, array, is_copy);
  return hand_out(elements, Op::kRmw, __builtin_return_address(0), is_copy);
}

void JNICALL release_array(JNIEnv* env, jarray array, void* elements, jint mode) {
  void* own = take_back(elements, mode != JNI_ABORT, mode != JNI_COMMIT);
  // HotSpot ignores the mode and lets the array move: a copy is needed further.
  if (mode == JNI_COMMIT && own != elements && !g_twin.created()) return;
  g_original.ReleasePrimitiveArrayCritical(env, array, own, mode);
}

const jchar* JNICALL get_string(JNIEnv* env, jstring string, jboolean* is_copy) {
  const jchar* chars = g_original.GetStringCritical(env, string, is_copy);
  return static_cast<const jchar*>(
      hand_out(const_cast<jchar*>(chars), Op::kLoad, __builtin_return_address(0), is_copy));
}

void JNICALL release_string(JNIEnv* env, jstring string, const jchar* chars) {
  g_original.ReleaseStringCritical(env, string, take_back(chars, false, true));
}

}  // namespace

bool install_jni_critical(jvmtiEnv* jvmti, AccessPath* access) {
  g_access = access;
  JvmtiMemory<jniNativeInterface> table(jvmti);
  if (g_in_table) {  // since an earlier recording
    g_installed.store(true, std::memory_order_relaxed);
    return true;
  }
  if (jvmti->GetJNIFunctionTable(table.out()) != JVMTI_ERROR_NONE) return false;
  g_original = *table.get();
  table.get()->GetPrimitiveArrayCritical = get_array;
  table.get()->ReleasePrimitiveArrayCritical = release_array;
  table.get()->GetStringCritical = get_string;
  table.get()->ReleaseStringCritical = release_string;
  g_installed.store(true, std::memory_order_relaxed);
  if (jvmti->SetJNIFunctionTable(table.get()) == JVMTI_ERROR_NONE) return g_in_table = true;
  g_installed.store(false, std::memory_order_relaxed);
  return false;
}

bool restore_jni_critical(jvmtiEnv* jvmti) {
  g_installed.store(false, std::memory_order_relaxed);
  if (!g_in_table) return true;
  for (int i = 0; i < kWaitMs && g_out.load(std::memory_order_relaxed) > 0; ++i) raw_sleep(1000000);
  if (g_out.load(std::memory_order_relaxed) > 0) return false;
  g_in_table = jvmti->SetJNIFunctionTable(&g_original) != JVMTI_ERROR_NONE;
  return !g_in_table;
}

}  // namespace classaccess
