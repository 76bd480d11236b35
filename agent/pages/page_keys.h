// Keys of their own for the pages that were touched last: a thread that goes back to one of them needs no system
// call, only another right in its signal frame.
//
// A page with a key is open for the threads that have the right to it, and they get it only while the page is in the
// window. When it leaves the window the thread that traps loses its right; if another thread has it too, the page
// gets the common key back, and the slot is not used again before that thread has trapped as well. A page without a
// slot is opened for the whole process.
// Context: under the lock of OpenPages.
#pragma once

#include <cstdint>

#include "agent/pages/page_model.h"
#include "agent/protect/protection_key.h"

namespace classaccess {

// What one thread may use. Lives in the thread; changed under the lock.
struct PageRights {
  uint32_t held = 0;  // a bit for each slot: the right is in the thread's PKRU, or may be
  // The frame of this trap is the thread's own, not that of a signal handler it runs, whose end brings older rights
  // back: rights may be given and taken.
  bool changeable = false;
};

class PageKeys {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `slots` keys of g_key's are there, 0: every page is opened for the process. False: no memory.
  bool create(uint32_t pages, uint32_t slots);
  uint32_t slots() const { return count_; }

  // The slot that holds the key of this page, kNone.
  uint32_t slot_of(uint32_t page) const { return slot_of_[page] == 0 ? kNone : slot_of_[page] - 1u; }

  // A slot for a page that has none: one whose page is not in the window and that no other thread may use. *evicted
  // is the page that has to get the common key back first, kNoPage if none. kNone: there is none.
  uint32_t find(const PageModel& model, const PageRights& rights, uint32_t* evicted);
  void put(uint32_t slot, uint32_t page);
  void used(uint32_t slot) { slots_[slot].used = ++tick_; }
  // The slot's page has the common key again, or is gone.
  void take_out(uint32_t page);

  // Another thread may have the right to this slot, or this one may get it back unseen.
  bool others(uint32_t slot, const PageRights& rights) const {
    bool mine = (rights.held >> slot & 1) != 0;
    return slots_[slot].holders > (mine && rights.changeable ? 1u : 0u);
  }
  // From now on the thread has the right to the slots in the window and to no other, if that can be.
  void settle(const PageModel& model, PageRights* rights);
  void drop(PageRights* rights) { change(rights, 0); }
  void adopt(uint32_t held, PageRights* rights) { change(rights, held); }

 private:
  struct Slot {
    uint32_t page = kNoPage;
    uint32_t holders = 0;  // threads that have the right
    uint64_t used = 0;
  };
  void change(PageRights* rights, uint32_t held);

  uint32_t count_ = 0;
  uint64_t tick_ = 0;
  Slot slots_[ProtectionKey::kMaxPageKeys];
  uint8_t* slot_of_ = nullptr;  // slot + 1, by page
};

}  // namespace classaccess
