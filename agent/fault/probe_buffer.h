// A thread's records made by probes, and the counts they become.
//
// The buffer is plain memory before a page without access: a full one makes the probe's
// store fault, and the handler drains it. The owner appends; whoever holds the drain
// lock takes records from `drained` up to the owner's cursor.
// Context: the owner's handler, GarbageCollectionStart, the writer thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/probe/probe_thread.h"
#include "classaccess/record.h"

namespace classaccess {

// What accesses of one probe to objects of one class have in common, and how many there
// were since it was last handed on.
struct alignas(64) CountSlot {
  uint64_t key = 0;  // probe id, with a mask also the bytes touched; 0: free
  uint64_t bytecode_pointer = 0;
  uint64_t klass_word = 0;
  uint64_t object = 0;  // mirrors: only this object; else 0
  uint64_t count = 0;
  uint32_t epoch = 0;   // g_gc_id when it was made
  uint32_t offset = 0;  // in the object; of the first element if `elements`
  uint32_t size = 0;
  uint8_t log2_element = 0;
  bool elements = false;  // any element of an array
  bool selected = false;
};

struct ProbeBuffer {
  static constexpr uint64_t kBytes = 64 << 10;
  static constexpr uint32_t kSlots = 8192;
  static constexpr uint32_t kInsides = 64;

  // A pointer into an object that operands had as their base: loops over a string keep it.
  struct Inside {
    uint64_t base = 0, object = 0;
  };

  uint64_t begin = 0;
  std::atomic<uint64_t> drained{0};
  uint64_t noted = 0;                            // behind the last record that note_headers has looked at
  std::atomic<const uint64_t*> cursor{nullptr};  // the owner's; null: it has none
  CountSlot* slots = nullptr;
  AccessRecord* firsts = nullptr;  // of each slot: the first access that it stands for
  Inside insides[kInsides];
  bool counted = false;                   // some slot has a count
  uint64_t with_count[kSlots / 64] = {};  // which, a bit each
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
