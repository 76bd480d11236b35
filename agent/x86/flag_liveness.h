// Whether status flags are read before they are overwritten: tells HotSpot's null
// checks (`cmp reg,[obj]` and `test [obj],reg` whose flags nobody uses) from comparisons.
// Context: signal handler and any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace classaccess {

// `next_bytes` is the code behind the comparison. True if straight-line code
// overwrites all status flags, calls, returns or jumps before reading one. False if
// one is read, a branch depends on one, or the code cannot be followed.
bool flags_are_dead_after(const uint8_t* next_bytes, size_t available);

}  // namespace classaccess
