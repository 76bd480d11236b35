// Who may use which open page: protection keys, and the rights of threads to them.
//
// A key belongs to one window (the common one, or that of a thread): any number of this window's open pages have it,
// and only its threads have the right to it. Or it is lent to one page at a time: threads that have
// the page in their own windows get the right, so going back to such a page, or using one that others use too, needs
// no system call, only another right in the signal frame. It stays lent when nobody has the right any more, until
// another page needs it. Few are lent to open pages at a time, and none while a thread waits for one of its own: those
// that have the right give it up at their next traps.
//
// What makes counts exact: a thread has no right to a key of a page that is not in its window.
// Context: under the lock of OpenPages.
#pragma once

#include <cstdint>

#include "agent/pages/window_pool.h"
#include "agent/protect/protection_key.h"

namespace classaccess {

// One thread in mode=pages. Lives in the thread; changed under the lock.
struct PageThread {
  uint32_t held = 0;  // a bit for each key: the right is in the thread's PKRU, or may be
  // The frame of this trap is the thread's own, not that of a signal handler it runs, whose end brings older rights
  // back: rights may be given and taken.
  bool changeable = false;
  bool waits = false;  // for a key of its own
  uint32_t window = WindowPool::kNone;
  uint32_t needless_traps = 0;  // at pages in its window

  bool holds(uint32_t key) const { return (held >> key & 1) != 0; }
};

class PageKeys {
 public:
  static constexpr uint32_t kNone = PageWindow::kNoKey;
  // What is left to threads to come, which need one of their own: so many keys that nobody has the right to; and all
  // but so many that may be lent, since a thread may keep its right for long.
  static constexpr uint32_t kReserve = 2, kMostLent = 4;

  // `keys` of g_key's. The last is the common window's. False: no memory.
  bool create(uint32_t pages, uint32_t keys);

  uint32_t key_of(uint32_t page) const { return key_of_[page] == 0 ? kNone : key_of_[page] - 1u; }
  bool is_lent(uint32_t key) const { return keys_[key].window == WindowPool::kNone; }
  uint32_t window_of(uint32_t key) const { return keys_[key].window; }
  bool is_held(uint32_t key) const { return keys_[key].holders != 0; }

  // Keys that belong to no window.
  uint32_t lendable() const;
  // To a page for which nobody has the right yet.
  bool may_lend() const;
  bool wanted() const { return waiting_ != 0; }
  // One that nobody has the right to: an empty one, or that which was used longest ago; *evicted is the page that has
  // to be closed first, kNoPage if none. kNone: there is none.
  uint32_t find(uint32_t* evicted) const;
  void own(uint32_t key, uint32_t window) { keys_[key].window = window; }
  // Can be lent as soon as its last holder has given up the right.
  void disown(uint32_t key) { keys_[key].window = WindowPool::kNone; }
  void wait(PageThread* thread, bool waits);

  // The page has this key from now on; it had none.
  void put(uint32_t key, uint32_t page);
  // The page has none any more.
  void take_out(uint32_t page);
  void used(uint32_t key) { keys_[key].used = ++tick_; }
  uint32_t keyed_pages() const { return keyed_; }

  // From now on the thread has the right to its window's key and to those of pages in the window, if that can be.
  // The common window uses no other key than its own.
  void settle(const PageWindow& window, PageThread* thread);
  void give_up(uint32_t key, PageThread* thread) { change(thread, thread->held & ~(1u << key)); }
  void drop(PageThread* thread) { change(thread, 0); }
  void adopt(uint32_t held, PageThread* thread) { change(thread, held); }

 private:
  struct Key {
    uint32_t window = WindowPool::kNone;  // whose it is
    uint32_t page = kNoPage;              // that it is lent to
    uint32_t holders = 0;                 // threads that have the right
    uint64_t used = 0;
  };
  void change(PageThread* thread, uint32_t held);

  uint32_t count_ = 0, waiting_ = 0, keyed_ = 0;
  uint64_t tick_ = 0;
  Key keys_[ProtectionKey::kMaxPageKeys];
  uint8_t* key_of_ = nullptr;  // key + 1, by page
};

}  // namespace classaccess
