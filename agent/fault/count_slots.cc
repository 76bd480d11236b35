#include "agent/fault/count_slots.h"

namespace classaccess {

CountSlot* CountSlots::victim(CountSlot* set, uint32_t epoch) {
  CountSlot* least = nullptr;
  for (uint32_t way = 0; way < kWays; ++way) {
    CountSlot* slot = &set[way];
    if (slot->key == 0 || slot->epoch != epoch) return slot;
    if (least == nullptr || slot->count < least->count) least = slot;
  }
  // What lies elsewhere by the larger table is not found any more; flush still hands it on.
  if (++crowded_out_ > sets_ * kWays / 2 && sets_ * kWays < kSlots) {
    sets_ *= 2;
    crowded_out_ = 0;
  }
  return least;
}

}  // namespace classaccess
