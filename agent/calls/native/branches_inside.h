// Branches into the middle of a function's first bytes from elsewhere in its library: from hand-written code that
// shares a tail, or from a part of the function that lies apart and has no symbol. A jump laid over those bytes would
// be entered in its middle. Context: no signal handler; safe loads must work.
#pragma once

#include <cstdint>
#include <vector>

namespace classaccess {

// Of `patches` (where jumps of kJumpBytes would lie, within [low, high)), those that some direct branch of the code in
// [low, high) leads into, behind their first byte.
std::vector<uint64_t> entered_in_the_middle(uint64_t low, uint64_t high, std::vector<uint64_t> patches);

// Size of the function that begins at `entry`, by its unwind table; 0: not known.
uint64_t size_by_unwind_table(uint64_t entry);

}  // namespace classaccess
