#include "agent/pages/page_keys.h"

#include "agent/base/reserve.h"

namespace classaccess {

bool PageKeys::create(uint32_t pages, uint32_t slots) {
  count_ = slots;
  tick_ = 0;
  for (Slot& slot : slots_) slot = {};
  slot_of_ = reserve_array<uint8_t>(pages);
  return slot_of_ != nullptr;
}

uint32_t PageKeys::find(const PageModel& model, const PageRights& rights, uint32_t* evicted) {
  *evicted = kNoPage;
  uint32_t best = kNone;
  for (uint32_t i = 0; i < count_; ++i) {
    const Slot& slot = slots_[i];
    if (others(i, rights) || (slot.page != kNoPage && model.is_open(slot.page))) continue;
    if (slot.page == kNoPage) return i;
    if (best == kNone || slot.used < slots_[best].used) best = i;
  }
  if (best != kNone) *evicted = slots_[best].page;
  return best;
}

void PageKeys::put(uint32_t slot, uint32_t page) {
  slots_[slot].page = page;
  slot_of_[page] = static_cast<uint8_t>(slot + 1);
  used(slot);
}

void PageKeys::take_out(uint32_t page) {
  uint32_t slot = slot_of(page);
  if (slot == kNone) return;
  slots_[slot].page = kNoPage;
  slot_of_[page] = 0;
}

void PageKeys::settle(const PageModel& model, PageRights* rights) {
  if (!rights->changeable) return;
  uint32_t held = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    if (slots_[i].page != kNoPage && model.is_open(slots_[i].page)) held |= 1u << i;
  }
  change(rights, held);
}

void PageKeys::change(PageRights* rights, uint32_t held) {
  for (uint32_t changed = rights->held ^ held; changed != 0; changed &= changed - 1) {
    uint32_t i = static_cast<uint32_t>(__builtin_ctz(changed));
    if ((held >> i & 1) != 0) {
      ++slots_[i].holders;
    } else {
      --slots_[i].holders;
    }
  }
  rights->held = held;
}

}  // namespace classaccess
