#include "agent/fault/java_thread.h"

#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"
#include "agent/base/safe_load.h"

namespace classaccess {

uint64_t find_java_thread(const VmLayout& layout, int32_t tid) {
  uint64_t list, threads;
  uint32_t length;
  if (!safe_load(layout.java_thread_list_slot, &list) || list == 0) return 0;
  if (!safe_load(list + layout.threads_list_length, &length) || length > (1u << 20)) return 0;
  if (!safe_load(list + layout.threads_list_threads, &threads)) return 0;
  for (uint32_t i = 0; i < length; ++i) {
    uint64_t thread, os_thread;
    int32_t id;
    if (!safe_load(threads + i * 8, &thread) || thread == 0) continue;
    if (!safe_load(thread + layout.java_thread_osthread, &os_thread) || os_thread == 0) continue;
    if (safe_load(os_thread + layout.osthread_thread_id, &id) && id == tid) return thread;
  }
  return 0;
}

int32_t current_tid() { return static_cast<int32_t>(raw_syscall(SYS_gettid)); }

}  // namespace classaccess
