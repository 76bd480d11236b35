// Of the verifying build, for tests only: takes all probes back and lets them be laid again, while the program runs,
// as often as CLASSACCESS_TAKE_BACK_ROUNDS says (none if it is not set), and counts what is left of them each time.
//
// A round begins when 300 jumps stand or a second has passed since the last one. What stands is not asked of the
// tables but searched: every byte of the code cache, and of the libraries that are
// probed, that begins a jump to a probe.
// Context: the writer's tick.
#pragma once

#include <cstdint>

#include "agent/heap/vm_layout.h"

namespace classaccess {

struct TakeBackCounters {
  uint64_t rounds = 0;
  uint64_t jumps_found = 0;     // before the rounds, in all
  uint64_t jumps_left = 0;      // after them
  uint64_t sites_restored = 0;  // sites that have the bytes they had before they were patched
  uint64_t sites_reused = 0;    // other bytes: HotSpot has put something else there
  uint64_t not_restored = 0;    // the patch stands
};
extern TakeBackCounters g_take_back;

void take_back_at_tick(const VmLayout& layout);

}  // namespace classaccess
