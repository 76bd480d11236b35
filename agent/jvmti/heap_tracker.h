// Keeps the object-start bits right across collections, and numbers them.
//
// A collection moves objects without our seeing it: afterwards the bits of what it
// emptied are cleared, and what it filled (survivors, the new part of old regions) is
// walked from its bottom, which is parsable then. Eden is not walked: everything
// there is allocated by recorded threads, whose header stores set the bits.
// Context: at_init: VMInit, before recording. started, finished: the VM thread, inside
// the pause, no JNI.
#pragma once

#include <cstdint>

#include "agent/heap/gc_log.h"
#include "agent/heap/object_starts.h"
#include "agent/heap/resolver.h"
#include "agent/heap/vm_layout.h"
#include "agent/hotspot/heap_regions.h"
#include "agent/hotspot/perf_counters.h"
#include "agent/protect/heap_scope.h"

namespace classaccess {

class HeapTracker {
 public:
  void create(Resolver* resolver, ObjectStarts* starts, GcLog* log, const VmLayout* layout, HeapRegions* regions,
              const VmStructs& vm) {
    resolver_ = resolver;
    starts_ = starts;
    log_ = log;
    layout_ = layout;
    regions_ = regions;
    cause_.find(vm, "sun.gc.cause");
  }

  // Walks what exists at VMInit, eden included, stepping over the threads' open TLABs.
  void at_init(uint64_t tlab_reserve_bytes);

  void started();
  void finished();
  // Of the collection that has started last; true also where the VM tells no cause
  // (-XX:-UsePerfData).
  bool caused_by(const char* cause) const;

  // heap=old|young: closes the regions of that kind as they are now, opens the others.
  // A humongous object allocated between collections is old from the next pause on.
  void set_scope(HeapScope scope) { scope_ = scope; }
  void apply_scope();

  // mode=pages: objects need not be found, so no start is ever marked.
  void set_unmarked() { marks_ = false; }

 private:
  static constexpr size_t kMaxSpaces = 1 << 16;
  struct Snapshot {
    HeapSpace* spaces = nullptr;
    size_t count = 0;
  };

  void read(Snapshot* snapshot);
  bool objects_moved(bool* full) const;
  void rebuild(bool full);
  void update_marks();
  const HeapSpace* before(const HeapSpace& space) const;

  Resolver* resolver_ = nullptr;
  ObjectStarts* starts_ = nullptr;
  GcLog* log_ = nullptr;
  const VmLayout* layout_ = nullptr;
  HeapRegions* regions_ = nullptr;
  HeapScope scope_ = HeapScope::kAll;
  bool marks_ = true;
  PerfString cause_;
  Snapshot before_, after_;
};

}  // namespace classaccess
