// Late attach: the heap that HotSpot has mapped for itself becomes one that is shared with
// the twin and closed.
//
// Chunk by chunk: the pages in use that were ever touched are copied to the twin, then the chunk is
// mapped anew from the memfd, which gives its old pages back; so at most one chunk is in
// memory twice. A thread in a JNI critical section runs on at a safepoint: it may read the
// chunk all the time, and its stores fault until the conversion is over.
// Context: run: the VM thread, at a safepoint, the fault handler installed. wait: signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/protect/heap_mappings.h"

namespace classaccess {

// A part of the heap; whole pages where it is a committed one.
struct HeapRange {
  uint64_t low = 0, high = 0;
  bool file = false;  // committed: a private file mapping (archived objects): untouched pages have contents too
};

struct ConversionResult {
  int error = 0;           // errno; what is converted by then works, but is not closed
  uint64_t committed = 0;  // bytes
  uint64_t copied = 0;     // bytes: touched and not zero
};

class HeapConversion {
 public:
  static constexpr uint64_t kChunkBytes = 32 << 20;

  // What there is of the heap, each list in order of addresses and without overlap.
  struct Heap {
    uint64_t low = 0, high = 0;  // the reservation
    const HeapRange* committed = nullptr;
    size_t committed_count = 0;
    const HeapRange* used = nullptr;  // hold objects; what lies outside reads as zero afterwards
    size_t used_count = 0;
  };
  static ConversionResult run(const Heap& heap, TwinUse twin);

  // For a fault at `address` by a store that is not permitted (SEGV_ACCERR) at `pc`: true if the
  // conversion was the reason. It is over then, and the instruction is to be tried again.
  static bool wait(uint64_t address, uint64_t pc);
};

}  // namespace classaccess
