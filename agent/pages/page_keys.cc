#include "agent/pages/page_keys.h"

#include "agent/base/reserve.h"

namespace classaccess {

bool PageKeys::create(uint32_t pages, uint32_t keys) {
  count_ = keys;
  tick_ = 0;
  waiting_ = keyed_ = 0;
  for (Key& key : keys_) key = {};
  if (keys != 0) keys_[keys - 1].window = WindowPool::kCommon;
  key_of_ = reserve_array<uint8_t>(pages);
  return key_of_ != nullptr;
}

uint32_t PageKeys::lendable() const {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < count_; ++i) sum += is_lent(i);
  return sum;
}

bool PageKeys::may_lend() const {
  uint32_t held = 0, unheld = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    held += is_lent(i) && is_held(i);
    unheld += is_lent(i) && !is_held(i);
  }
  return waiting_ == 0 && unheld > kReserve && held < kMostLent;
}

uint32_t PageKeys::find(uint32_t* evicted) const {
  *evicted = kNoPage;
  uint32_t best = kNone;
  for (uint32_t i = 0; i < count_; ++i) {
    if (!is_lent(i) || is_held(i)) continue;
    if (keys_[i].page == kNoPage) return i;
    if (best == kNone || keys_[i].used < keys_[best].used) best = i;
  }
  if (best != kNone) *evicted = keys_[best].page;
  return best;
}

void PageKeys::wait(PageThread* thread, bool waits) {
  if (thread->waits == waits) return;
  thread->waits = waits;
  if (waits) {
    ++waiting_;
  } else {
    --waiting_;
  }
}

void PageKeys::put(uint32_t key, uint32_t page) {
  ++keyed_;
  key_of_[page] = static_cast<uint8_t>(key + 1);
  if (is_lent(key)) keys_[key].page = page;
  used(key);
}

void PageKeys::take_out(uint32_t page) {
  uint32_t key = key_of(page);
  if (key == kNone) return;
  --keyed_;
  keys_[key].page = kNoPage;
  key_of_[page] = 0;
}

void PageKeys::settle(const PageWindow& window, PageThread* thread) {
  if (!thread->changeable) return;
  uint32_t held = window.key == kNone ? 0 : 1u << window.key;
  if (window.key != kNone && thread->window != WindowPool::kCommon && waiting_ == 0) {
    for (uint32_t i = 0; i < count_; ++i) {
      if (!is_lent(i) || keys_[i].page == kNoPage || !window.model.is_open(keys_[i].page)) continue;
      if (is_held(i) || may_lend()) held |= 1u << i;
    }
  }
  change(thread, held);
}

void PageKeys::change(PageThread* thread, uint32_t held) {
  for (uint32_t changed = thread->held ^ held; changed != 0; changed &= changed - 1) {
    uint32_t i = static_cast<uint32_t>(__builtin_ctz(changed));
    if ((held >> i & 1) != 0) {
      ++keys_[i].holders;
    } else {
      --keys_[i].holders;
    }
  }
  thread->held = held;
}

}  // namespace classaccess
