#include "agent/jvmti/open_tlabs.h"

#include "agent/base/safe_load.h"

namespace classaccess {

uint64_t OpenTlabs::skip(uint64_t at, void* context) {
  const auto* self = static_cast<const OpenTlabs*>(context);
  for (size_t i = 0; i < self->count; ++i) {
    if (at >= self->gaps[i].top && at < self->gaps[i].end) return self->gaps[i].end;
  }
  return at;
}

void read_tlabs(const VmLayout& layout, uint64_t reserve, OpenTlabs* out) {
  uint64_t list = 0, threads = 0;
  uint32_t length = 0;
  if (!safe_load(layout.java_thread_list_slot, &list) || !safe_load(list + layout.threads_list_length, &length) ||
      !safe_load(list + layout.threads_list_threads, &threads)) {
    return;
  }
  for (uint32_t i = 0; i < length && out->count < OpenTlabs::kMax; ++i) {
    uint64_t thread = 0, top = 0, end = 0, allocation_end = 0;
    if (!safe_load(threads + 8 * i, &thread)) continue;
    uint64_t tlab = thread + layout.java_thread_tlab;
    if (!safe_load(tlab + layout.tlab_top, &top) || !safe_load(tlab + layout.tlab_end, &end) || top == 0) continue;
    // _allocation_end follows _end in ThreadLocalAllocBuffer and is the real end when
    // sampling has lowered the other (share/gc/shared/threadLocalAllocBuffer.hpp).
    if (safe_load(tlab + layout.tlab_end + 8, &allocation_end) && allocation_end > end &&
        allocation_end < layout.heap_high) {
      end = allocation_end;
    }
    out->gaps[out->count++] = {top, end + reserve};
  }
}

}  // namespace classaccess
