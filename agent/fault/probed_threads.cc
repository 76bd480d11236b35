// The threads whose probes record: each has a buffer, from its first record to its end.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/base/thread_offset.h"
#include "agent/fault/probed_access.h"
#include "agent/fault/virtual_threads.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {

ProbedAccess g_probed;

namespace {

constexpr uint64_t kGuardBytes = 4096;
constexpr uint64_t kStride = ProbeBuffer::kBytes + kGuardBytes;
constexpr uint64_t kCountBytes = CountSlots::kSlots * (sizeof(CountSlot) + sizeof(AccessRecord));

}  // namespace

bool ProbedAccess::create(AccessPath* path, ObjectStarts* starts) {
  path_ = path;
  starts_ = starts;
  const VmLayout& layout = *path->layout;
  header_bytes_ = layout.compact_headers ? 8 : layout.klass_offset + (layout.compressed_class_pointers ? 4u : 8u);
  whole_heap_ = g_armed.limit_low() == 0 && g_armed.limit_high() == ~0ull && !path->part_of_heap;
  void* buffers = reserve_memory(kStride * ThreadPool::kCapacity, PROT_NONE);
  void* counts = reserve_memory(kCountBytes * ThreadPool::kCapacity, PROT_NONE);
  // Cursors of threads that are not recorded stay in it.
  void* discard =
      discard_ != 0 ? reinterpret_cast<void*>(discard_) : reserve_memory(kStride, PROT_NONE, Keep::kProcess);
  if (buffers == nullptr || counts == nullptr || discard == nullptr) return false;
  if (mprotect(discard, ProbeBuffer::kBytes, PROT_READ | PROT_WRITE) != 0) return false;
  mark_ = g_probes.add_mark(kMarkBytes / 8);
  if (mark_ == 0 && g_probes.enabled()) return false;
  buffers_ = reinterpret_cast<uint64_t>(buffers);
  counts_ = reinterpret_cast<uint64_t>(counts);
  discard_ = reinterpret_cast<uint64_t>(discard);
  ended_.store(false, std::memory_order_relaxed);
  return true;
}

void ProbedAccess::attach(ThreadState* thread) {
  if (!enabled()) return;
  ProbeBuffer& buffer = thread->probes;
  if (buffer.begin == 0) {
    uint64_t index = path_->threads->index_of(thread);
    const uint64_t begin = buffers_ + index * kStride, counts = counts_ + index * kCountBytes;
    auto open = [](uint64_t at, uint64_t bytes) {
      return raw_syscall(SYS_mprotect, static_cast<long>(at), static_cast<long>(bytes), PROT_READ | PROT_WRITE) == 0;
    };
    if (!open(begin, ProbeBuffer::kBytes) || !open(counts, kCountBytes)) return;
    auto* slots = reinterpret_cast<CountSlot*>(counts);
    buffer.counts.use(slots, reinterpret_cast<AccessRecord*>(slots + CountSlots::kSlots));
    buffer.begin = begin;
  }
  DrainScope scope(&buffer, true);
  buffer.drained.store(buffer.noted = buffer.begin, std::memory_order_relaxed);
  t_probe.cursor = buffer.begin;
  buffer.cursor.store(&t_probe.cursor, std::memory_order_release);
  watch_this_thread(path_->layout->heap_low, path_->layout->heap_high - path_->layout->heap_low);
  buffer.mounted = path_->virtual_threads != nullptr && path_->virtual_threads->current(thread) != 0;
}

void ProbedAccess::forget_this_thread() {
  t_probe.cursor = g_probed.discard_;
  watch_this_thread(0, 0);
}

void ProbedAccess::let_go(ThreadState* thread) {
  if (!enabled() || thread->probes.begin == 0) return;
  ProbeBuffer& buffer = thread->probes;
  DrainScope scope(&buffer, true);
  drain(thread);
  const auto at = reinterpret_cast<uint64_t>(buffer.cursor.exchange(nullptr, std::memory_order_relaxed));
  uint64_t cursor = 0;
  // Or it has died, and its thread-local storage is somebody else's.
  if (at == 0 || !safe_load(at, &cursor) || cursor - buffer.begin > ProbeBuffer::kBytes) return;
  const WatchedWindow none;
  const uint64_t zero = 0;
  const auto window = at - static_cast<uint64_t>(int64_t{thread_offset(&t_probe.cursor)}) +
                      static_cast<uint64_t>(int64_t{watched_offset()});
  safe_copy(reinterpret_cast<void*>(window), reinterpret_cast<uint64_t>(&none), sizeof(none));
  safe_copy(reinterpret_cast<void*>(at), reinterpret_cast<uint64_t>(&zero), sizeof(zero));
}

void ProbedAccess::retire(ThreadState* thread) {
  if (!enabled()) return;
  ProbeBuffer& buffer = thread->probes;
  DrainScope scope(&buffer, true);
  drain(thread);
  flush(thread);
  buffer.cursor.store(nullptr, std::memory_order_release);
  forget_this_thread();
}

void ProbedAccess::mounted(ThreadState* thread, bool now) {
  if (!enabled() || thread->probes.begin == 0) return;
  DrainScope scope(&thread->probes, true);
  drain(thread);
  flush(thread);
  thread->probes.mounted = now && path_->virtual_threads != nullptr;
}

// Asked when there are records, not at each mount: a virtual thread has its row from its first
// access on, and the name that it has then. It stays mounted while the drain lock is held.
void ProbedAccess::find_owner(ThreadState* thread) {
  const uint32_t id = thread->probes.mounted ? path_->virtual_threads->current(thread) : 0;
  thread->probes.virtual_id = id;
  const ThreadChoice choice = thread->choice.load(std::memory_order_relaxed);
  thread->probes.muted = id != 0 ? !path_->virtual_threads->row(id).recorded
                                 : choice == ThreadChoice::kVirtualOnly || choice == ThreadChoice::kExcluded;
}

uint64_t ProbedAccess::make_room(ThreadState* thread) {
  if (thread == nullptr || thread->probes.begin == 0) return discard_;
  ProbeBuffer& buffer = thread->probes;
  DrainScope scope(&buffer, true);
  drain(thread);
  tell_own_context(thread);  // a full buffer had no room for marks
  buffer.drained.store(buffer.noted = buffer.begin, std::memory_order_relaxed);
  t_probe.cursor = buffer.begin;
  return buffer.begin;
}

// Behind the last record; 0: it has no cursor of its own.
uint64_t ProbedAccess::end_of(const ProbeBuffer& buffer) {
  const uint64_t* cursor = buffer.cursor.load(std::memory_order_acquire);
  uint64_t end = 0;
  // The owner may be gone without a word, and its thread-local storage with it.
  if (cursor == nullptr || !safe_load(reinterpret_cast<uint64_t>(cursor), &end)) return 0;
  std::atomic_thread_fence(std::memory_order_acquire);
  return end - buffer.begin <= ProbeBuffer::kBytes ? end : 0;
}

}  // namespace classaccess
