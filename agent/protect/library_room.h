// Free address space on both sides of libjvm and the libraries beside it, for the probes in
// their code: a jump reaches 2 GB either way, and the code cache may be farther off.
// Context: Agent_OnLoad; release: before recording.
#pragma once

#include <cstdint>

#include "agent/protect/code_cache_room.h"

namespace classaccess {

// The largest gaps within reach of `text` (an address in libjvm), reserved; a side may be
// empty. With a limit on the address space: none.
RoomAround reserve_library_room(uint64_t text);
void release_library_room(const RoomAround& room);

}  // namespace classaccess
