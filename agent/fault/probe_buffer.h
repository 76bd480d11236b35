// A thread's records made by probes, and the counts they become.
//
// The buffer is plain memory before a page without access: a full one makes the probe's
// store fault, and the handler drains it. The owner appends; whoever holds the drain
// lock takes records from `drained` up to the owner's cursor.
// Context: the owner's handler, GarbageCollectionStart, the writer thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/fault/count_slots.h"
#include "agent/probe/probe_thread.h"
#include "classaccess/record.h"

namespace classaccess {

// The last stores that have begun to make an object.
struct NewObject {
  struct Store {
    uint64_t at = 0, next = 0;  // its record in the buffer
    uint64_t address = 0;
    uint64_t key = 0, bytecode_pointer = 0;  // as in a CountSlot
    uint32_t epoch = 0;
    int32_t displacement = 0;
    AccessRecord record;
  };
  Store before[2];  // the last one is [0]
  // Round the addresses of the stores (RecordKind::kPending) whose object was not made yet.
  uint64_t pending_low = 0, pending_high = 0;  // 0: none
  uint32_t pending_epoch = 0;

  void note(const AccessRecord& record) {
    if (record.kind == RecordKind::kKlassStore) {
      const bool made = pending_low >= record.object && pending_high <= record.object + record.extent;
      if (made || pending_epoch != record.gc_id) pending_low = pending_high = 0;
    } else if (record.kind == RecordKind::kPending) {
      if (pending_epoch != record.gc_id) pending_low = pending_high = 0;
      pending_epoch = record.gc_id;
      if (pending_high == 0 || record.address < pending_low) pending_low = record.address;
      if (record.address + record.size > pending_high) pending_high = record.address + record.size;
    }
  }
  bool has_pending(uint64_t low, uint64_t high) const { return pending_low < high && pending_high > low; }
};

struct ProbeBuffer {
  static constexpr uint64_t kBytes = 64 << 10;
  static constexpr uint32_t kInsides = 64;

  // A pointer into an object that operands had as their base: loops over a string keep it.
  struct Inside {
    uint64_t base = 0, object = 0;
  };

  uint64_t begin = 0;
  std::atomic<uint64_t> drained{0};
  uint64_t noted = 0;                            // behind the last record that note_headers has looked at
  std::atomic<const uint64_t*> cursor{nullptr};  // the owner's; null: it has none
  CountSlots counts;
  NewObject fresh;
  Inside insides[kInsides];
  bool mounted = false;                   // a virtual thread runs on the owner (JVMTI events)
  uint32_t virtual_id = 0;                // whose records these are: VirtualThreads, 0: the thread's own
  uint8_t left_rounds = 0;                // in which the writer got no farther
  bool muted = false;                     // `threads=` does not want him
  std::atomic<uint64_t> holder{0};        // drain lock: address of the holder's ProbeThread
  uint32_t asks_left = 0;                 // how often this drain may still wait for another thread (ask_others)
  std::atomic<bool> asking{false};        // the owner holds it and asks for what others have recorded
};

// The drain lock of one thread. Its holder may push into the thread's ring.
class DrainScope {
 public:
  // Waits for it if `wait`. Held already by this thread: held() and not first().
  DrainScope(ProbeBuffer* buffer, bool wait);
  ~DrainScope();
  bool held() const { return held_; }
  bool first() const { return first_; }
  DrainScope(const DrainScope&) = delete;

 private:
  ProbeBuffer* buffer_;
  bool held_ = false, first_ = false;
};

}  // namespace classaccess
