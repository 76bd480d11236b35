// libjvm's mmap64, munmap, mprotect and madvise, interposed: recognises the heap's
// reservation, and keeps every committed heap range shared with the twin and tagged
// with the key.
//
// Facts (measured on 17 and 25): the four functions are JUMP_SLOT relocations of
// libjvm; the heap is one PROT_NONE reservation of at least MaxHeapSize, commits are
// mmap(RW, FIXED|ANONYMOUS) inside it, uncommits mmap(NONE, FIXED|ANONYMOUS); G1 maps
// archived objects as private file mappings inside it.
// Context: install: Agent_OnLoad. The hooks run on any VM thread, in normal context;
// a short spin lock orders them (commits of different regions may be concurrent).
#pragma once

#include <cstdint>

namespace classaccess {

enum class TwinUse : uint8_t {
  kOff,            // commits stay HotSpot's own private mappings
  kWherePossible,  // without memfd or room for the view: as kOff
  kRequired,       // without: an error in the state
};

// Before the heap exists. Empty string, or the reason (a slot that was not found).
const char* install_heap_mappings(uint64_t max_heap_bytes, TwinUse twin = TwinUse::kRequired);

// Late attach: the heap exists. Its calls go through unchanged until heap_conversion.h
// has called adopt_heap. Does nothing where they are installed. Empty string or the reason.
const char* install_late_heap_mappings();

// Takes the hooks out again (the JVM's start failed or the heap was not understood).
void remove_heap_mappings();

// Called for each committed range that is about to be given back, or that the VM closes itself, when
// it counts as committed no longer. May be null. Set before the heap is closed.
extern void (*g_on_uncommit)(uint64_t low, uint64_t high);

struct HeapMappingState {
  bool found = false;  // a reservation was recognised and its commits are shared
  int error = 0;       // errno of a mapping that could not be made shared
  uint64_t low = 0, high = 0;
};
HeapMappingState heap_mapping_state();

// For heap_conversion: the hooks wait while one lives.
class HeapMappingsLock {
 public:
  HeapMappingsLock();
  ~HeapMappingsLock();
  HeapMappingsLock(const HeapMappingsLock&) = delete;
  HeapMappingsLock& operator=(const HeapMappingsLock&) = delete;
};
// Under the lock: makes the tables for the heap, and the twin if `twin` says so, unless an
// earlier recording has; the state is `found` from now on. 0 or errno.
int adopt_heap(uint64_t low, uint64_t high, TwinUse twin);
// Under the lock: [low, high) is committed and, with a twin, mapped from it; closes it.
// 0 or errno.
int adopt_commit(uint64_t low, uint64_t high);
// Under the lock: all of it is mapped from the twin already.
bool heap_is_shared(uint64_t low, uint64_t high);

}  // namespace classaccess
