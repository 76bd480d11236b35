// The Drain's part of calls=.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/store/drain.h"

namespace classaccess {
namespace {

// The name that the kernel knows of one of our threads.
std::string kernel_name(int32_t tid) {
  char path[48], name[32];
  snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t length = read(fd, name, sizeof(name));
  close(fd);
  return length > 1 ? std::string(name, static_cast<size_t>(length) - 1) : "";
}

}  // namespace

// Which context the records of the stream are made in from `record` on.
void Drain::enter_context(Stream* stream, const AccessRecord& record) {
  if (record.kind == RecordKind::kCallContext) stream->context = record.site_id;
  context_ = stream->context;
}

// Native calls may come before a thread has its state; threads of the VM never get one.
void Drain::identify_call_threads() {
  constexpr uint64_t kPatienceNs = 1000000000;
  for_each_call_thread([&](CallThread& thread) {
    if (thread.thread_id.load(std::memory_order_acquire) != 0 || thread.virtual_id != 0) return;
    uint32_t id = 0;
    sources_.threads->for_each([&](ThreadState& state) {
      if (state.tid == thread.tid && state.phase.load(std::memory_order_acquire) == ThreadPhase::kLive)
        id = state.thread_id;
    });
    const uint64_t now = monotonic_ns();
    const uint64_t since = call_threads_seen_.try_emplace(&thread, now).first->second;
    const bool ended = thread.phase.load(std::memory_order_acquire) == 2;
    const bool full = thread.ring->pending() > CallRing::kCapacity / 2;
    if (id == 0 && (ended || full || now - since > kPatienceNs)) id = sources_.threads->next_thread_id();
    if (id == 0) return;
    call_threads_seen_.erase(&thread);
    uint32_t none = 0;
    thread.thread_id.compare_exchange_strong(none, id, std::memory_order_release);
  });
}

uint64_t Drain::take_calls() {
  if (!sources_.calls) return 0;
  identify_call_threads();
  const uint64_t taken = calls_.take([this](const CallThread& thread) { name_call_thread(thread); });
  counters_.calls = true;
  counters_.call_rows = calls_.rows();
  return taken;
}

// Threads that are no Java threads have no row yet.
void Drain::name_call_thread(const CallThread& thread) {
  if (thread.virtual_id != 0) {
    if (sources_.virtual_threads != nullptr) update_virtual(thread.virtual_id);
    return;
  }
  const uint32_t id = thread.thread_id.load(std::memory_order_relaxed);
  bool known = false;
  sources_.threads->for_each([&](ThreadState& state) {
    if (state.thread_id != id) return;
    known = true;
    update_thread(state, stream_of(state), true);
  });
  if (known || !call_threads_named_.insert(id).second) return;
  ThreadRow row;
  row.id = id;
  row.tid = thread.tid;
  row.name = kernel_name(thread.tid);
  row.kind = "platform";
  threads_.put(row);
  changed_ = true;
}

}  // namespace classaccess
