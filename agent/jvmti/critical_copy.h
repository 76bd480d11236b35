// Copies of arrays for native code, where there is no twin view (twin=off): JNI allows
// Get*Critical to return one. The pages of the array stay closed, system calls on the
// copy work, and the array is recorded as one access.
// Context: the thread in Get*Critical or Release*Critical, inside an AgentScope; the array
// does not move meanwhile.
#pragma once

#include <cstdint>

#include "agent/heap/resolver.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

// A copy of the array whose first element is at `elements`; nullptr if the array cannot be
// told, is empty, or there is no memory.
void* make_critical_copy(Resolver* resolver, const VmLayout& layout, uint64_t elements);

// If `copy` is one of ours: with `store`, writes to the array what has changed in it (what
// other threads stored meanwhile stays); with `free`, it is gone afterwards. Returns the
// address of the array's elements, 0 if it is none of ours.
uint64_t settle_critical_copy(const void* copy, bool store, bool free);

}  // namespace classaccess
