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

// Before the heap exists. Empty string, or the reason (a slot that was not found).
const char* install_heap_mappings(uint64_t max_heap_bytes);

// Takes the hooks out again (the JVM's start failed or the heap was not understood).
void remove_heap_mappings();

struct HeapMappingState {
  bool found = false;  // a reservation was recognised and its commits are shared
  int error = 0;       // errno of a mapping that could not be made shared
  uint64_t low = 0, high = 0;
};
HeapMappingState heap_mapping_state();

}  // namespace classaccess
