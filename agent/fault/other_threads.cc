// The records of several threads together: an object that one of them uses may have been made by
// another, whose records nobody has looked at.
#include "agent/base/wake.h"
#include "agent/fault/probed_access.h"
#include "agent/protect/armed_pages.h"

namespace classaccess {
namespace {

// Rounds in which the writer leaves a record whose object is not known.
constexpr uint8_t kPatience = 8;
// How long an asker waits before it looks again for locks that others held.
constexpr uint64_t kAskNs = 20000;
// In a record's head: its store has made an object, which is marked already.
constexpr uint64_t kNoted = 1ull << 63;

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
  const bool all = g_probed.drain(thread, false);
  // A thread that traps often, or does nothing, makes no progress here either: its records are not to suffer.
  const bool stuck = !all && buffer.drained.load(std::memory_order_relaxed) == before;
  buffer.left_rounds = stuck && buffer.left_rounds < kPatience ? static_cast<uint8_t>(buffer.left_rounds + 1) : 0;
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
  // Two that ask each other would wait in vain.
  DrainScope own(&asker->probes, false);
  const bool shows = waits && times != 0 && own.held() && asker->probes.begin != 0;
  if (shows) note_headers(asker);
  asker->probes.asking.store(waits, std::memory_order_relaxed);
  if (times != 0) {
    --asker->probes.asks_left;
    raw_sleep(kAskNs);
  }
  uint32_t asking = 0, busy = 0;
  path_->threads->for_each([&](ThreadState& thread) {
    if (&thread == asker || thread.probes.begin == 0) return;
    DrainScope scope(&thread.probes, false);
    if (scope.first()) return note_headers(&thread);
    ++(thread.probes.asking.load(std::memory_order_relaxed) ? asking : busy);
  });
  asker->probes.asking.store(false, std::memory_order_relaxed);
  if (shows) forget_noted(asker->probes);
  t_unknown = unknown;
  if (asker->probes.asks_left == 0) return false;
  return busy != 0 || (asking != 0 && may_ask(*asker, times));
}

void ProbedAccess::note_headers(ThreadState* thread) {
  ProbeBuffer& buffer = thread->probes;
  const uint64_t end = end_of(buffer);
  if (end == 0) return;
  const uint64_t drained = buffer.drained.load(std::memory_order_relaxed);
  uint64_t at = buffer.noted > drained ? buffer.noted : drained;
  while (at < end) {
    auto& record = *reinterpret_cast<ProbeRecord*>(at);
    const Probe& probe = g_probes.row(probe_id_of(record.head));
    const uint64_t next = at + record_bytes_of(record.head);
    if (next >= end) break;  // not proven to be made
    if (probe.operand.op == Op::kStore && !probe.operand.has_index && g_armed.in_range(record.address) &&
        path_->note_probed_header(thread, static_cast<CachedInstruction*>(probe.owner), record.address)) {
      record.head |= kNoted;
    }
    at = next;
  }
  buffer.noted = at;
}

// What the thread did to an object before it had its header makes no access to a field.
void ProbedAccess::forget_noted(ProbeBuffer& buffer) {
  for (uint64_t at = buffer.drained.load(std::memory_order_relaxed); at < buffer.noted;) {
    auto& record = *reinterpret_cast<ProbeRecord*>(at);
    if ((record.head & kNoted) != 0) {
      record.head &= ~kNoted;
      const uint64_t object = record.address - path_->layout->klass_offset;
      path_->resolver->forget(object, object + 8);
    }
    at += record_bytes_of(record.head);
  }
  buffer.noted = 0;
}

}  // namespace classaccess
