#include "agent/fault/call_marks.h"

#include "agent/calls/call_core.h"
#include "agent/fault/access_path.h"
#include "agent/fault/own_thread.h"
#include "agent/fault/probed_access.h"

namespace classaccess {

void tell_context(ThreadState* thread, uint32_t context) {
  if (thread->told_context == context) return;
  g_probed.flush(thread);  // counted in the context before
  thread->told_context = context;
  AccessRecord record = {};
  record.kind = RecordKind::kCallContext;
  record.site_id = context;
  record.virtual_id = thread->probes.virtual_id;
  push_record(thread, record);
}

void tell_own_context(ThreadState* thread) {
  const CallThread* calls = t_call_thread;
  tell_context(thread, calls != nullptr && g_call_contexts_wanted.load(std::memory_order_relaxed) ? calls->context : 0);
}

// Of the thread whose calls `calls` has: on it. What its probes record now is another's, or nobody's: no mark.
void context_changed(CallThread* calls) {
  const ThreadState* thread = t_state;
  if (calls != t_call_thread || thread == nullptr || t_probe.busy != 0) return;
  const uint64_t begin = thread->probes.begin, at = t_probe.cursor;
  if (begin == 0 || at < begin || at + kMarkBytes > begin + ProbeBuffer::kBytes) return;
  t_probe.busy = 1;
  asm volatile("" ::: "memory");
  auto* mark = reinterpret_cast<volatile uint64_t*>(at);
  mark[0] = g_probed.mark();
  mark[1] = calls->context;
  asm volatile("" ::: "memory");
  t_probe.cursor = at + kMarkBytes;
  t_probe.busy = 0;
}

}  // namespace classaccess
