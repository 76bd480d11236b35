#include "agent/jvmti/virtual_mounts.h"

#include <string.h>

#include "agent/calls/java/virtual_calls.h"
#include "agent/fault/fault_handler.h"
#include "agent/fault/probed_access.h"
#include "agent/jvmti/jvmti_memory.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {
namespace {

// jvmti.h of 21: bit 44 of jvmtiCapabilities; older headers do not name it.
constexpr size_t kVirtualThreadsBit = 44;

void changed(bool mounted) {
  ThreadState* thread = FaultHandler::this_thread();
  if (thread == nullptr) return;
  g_probed.mounted(thread, mounted);
  calls_mounted(thread, mounted);
}

void JNICALL on_mount(jvmtiEnv*, ...) { changed(true); }
void JNICALL on_unmount(jvmtiEnv*, ...) { changed(false); }

}  // namespace

void want_virtual_mounts(int major, jvmtiCapabilities* wanted) {
  if (major < 21) return;
  reinterpret_cast<unsigned char*>(wanted)[kVirtualThreadsBit / 8] |= 1u << (kVirtualThreadsBit % 8);
}

namespace {
bool g_watching = false;

// Both events on or off: how many of them were found.
int set_events(jvmtiEnv* jvmti, bool on) {
  jint count = 0;
  JvmtiMemory<jvmtiExtensionEventInfo> events(jvmti);
  if (jvmti->GetExtensionEvents(&count, events.out()) != JVMTI_ERROR_NONE) return 0;
  int found = 0;
  for (jint i = 0; i < count; ++i) {
    jvmtiExtensionEventInfo& event = events[i];
    jvmtiExtensionEvent callback = strcmp(event.id, "com.sun.hotspot.events.VirtualThreadMount") == 0     ? on_mount
                                   : strcmp(event.id, "com.sun.hotspot.events.VirtualThreadUnmount") == 0 ? on_unmount
                                                                                                          : nullptr;
    if (callback != nullptr &&
        jvmti->SetExtensionEventCallback(event.extension_event_index, callback) == JVMTI_ERROR_NONE &&
        jvmti->SetEventNotificationMode(on ? JVMTI_ENABLE : JVMTI_DISABLE,
                                        static_cast<jvmtiEvent>(event.extension_event_index),
                                        nullptr) == JVMTI_ERROR_NONE) {
      ++found;
    }
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.id));
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.short_description));
    for (jint p = 0; p < event.param_count; ++p) {
      jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.params[p].name));
    }
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(event.params));
  }
  return found;
}

}  // namespace

bool watch_virtual_mounts(jvmtiEnv* jvmti) {
  if (!g_watching) g_watching = set_events(jvmti, true) == 2;
  return g_watching;
}

void ignore_virtual_mounts(jvmtiEnv* jvmti) {
  if (g_watching) set_events(jvmti, false);
  g_watching = false;
}

}  // namespace classaccess
