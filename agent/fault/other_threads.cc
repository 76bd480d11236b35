// The records of several threads together: an object that one of them uses may have been made by
// another, whose records nobody has looked at.
#include "agent/base/wake.h"
#include "agent/fault/probed_access.h"

namespace classaccess {
namespace {

// Rounds in which the writer leaves a record whose object is not known.
constexpr uint8_t kPatience = 8;
// How long an asker waits for a lock that another one holds; and for one whose owner asks too, who
// may be waiting for him.
constexpr uint64_t kAskNs = 20000;
constexpr int kAsks = 50000, kAsksOfAskers = 250;

}  // namespace

void ProbedAccess::collect(ThreadState* thread, void (*empty_ring)(void* context, ThreadState*), void* context) {
  if (thread->probes.begin == 0) return;
  DrainScope scope(&thread->probes, false);
  if (!scope.first()) return;
  t_ring_full = {empty_ring, context};
  ProbeBuffer& buffer = thread->probes;
  const uint64_t before = buffer.drained.load(std::memory_order_relaxed);
  t_unknown = buffer.left_rounds < kPatience ? UnknownObject::kLeave : UnknownObject::kTake;
  empty_ring(context, thread);
  g_probed.drain(thread, false);
  buffer.left_rounds = buffer.drained.load(std::memory_order_relaxed) == before && buffer.left_rounds < kPatience
                           ? static_cast<uint8_t>(buffer.left_rounds + 1)
                           : 0;
  g_probed.flush(thread);
  empty_ring(context, thread);
  t_ring_full = {};
  t_unknown = UnknownObject::kAsk;
}

void ProbedAccess::drain_all(bool with_counts) {
  if (!enabled()) return;
  const UnknownObject unknown = t_unknown;
  t_unknown = UnknownObject::kTake;
  for (bool headers : {true, false}) {
    path_->threads->for_each([&](ThreadState& thread) {
      if (thread.probes.begin == 0) return;
      DrainScope scope(&thread.probes, true);
      if (!scope.first()) return;
      if (headers) return note_headers(&thread);
      drain(&thread);
      if (with_counts) flush(&thread);
    });
  }
  t_unknown = unknown;
}

bool ProbedAccess::ask_others(ThreadState* asker, int times) {
  const UnknownObject unknown = t_unknown;
  const bool waits = unknown == UnknownObject::kAsk;
  t_unknown = UnknownObject::kTake;
  asker->probes.asking.store(waits, std::memory_order_relaxed);
  if (times != 0) raw_sleep(kAskNs);
  uint32_t asking = 0, busy = 0;
  path_->threads->for_each([&](ThreadState& thread) {
    if (&thread == asker || thread.probes.begin == 0) return;
    DrainScope scope(&thread.probes, false);
    if (scope.first()) return note_headers(&thread);
    ++(thread.probes.asking.load(std::memory_order_relaxed) ? asking : busy);
  });
  asker->probes.asking.store(false, std::memory_order_relaxed);
  t_unknown = unknown;
  return (busy != 0 && times < kAsks) || (asking != 0 && times < kAsksOfAskers);
}

}  // namespace classaccess
