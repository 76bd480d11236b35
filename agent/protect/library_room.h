// Free address space on both sides of libjvm and the libraries beside it, for the probes in
// their code: a jump reaches 2 GB either way, and the code cache may be farther off.
// It is the process's: a later recording uses it again.
// Context: Agent_OnLoad; release: before recording.
#pragma once

#include <cstdint>

#include "agent/protect/code_cache_room.h"

namespace classaccess {

// The largest gaps within reach of `text` (an address in libjvm); a side may be empty. With a
// limit on the address space: none.
void reserve_library_room(uint64_t text);
// What is reserved; empty if nothing is.
RoomAround library_room();
void release_library_room();

}  // namespace classaccess
