#include "agent/store/pending_stores.h"

#include <algorithm>

namespace classaccess {

void PendingStores::age() {
  for (const AccessRecord& record : recent_) old_.emplace(record.address, record);
  recent_.clear();
}

void PendingStores::collect(const AccessRecord& klass_store) {
  found_.clear();
  uint64_t low = klass_store.object, high = klass_store.object + klass_store.extent;
  for (auto it = old_.lower_bound(low); it != old_.end() && it->first < high; it = old_.erase(it)) {
    found_.push_back(it->second);
  }
  auto keep = recent_.begin();
  for (const AccessRecord& record : recent_) {
    if (record.address >= low && record.address < high) {
      found_.push_back(record);
    } else {
      *keep++ = record;
    }
  }
  recent_.erase(keep, recent_.end());
  std::stable_sort(found_.begin(), found_.end(),
                   [](const AccessRecord& a, const AccessRecord& b) { return a.t_ns < b.t_ns; });
  for (AccessRecord& record : found_) {
    record.object = klass_store.object;
    record.extent = klass_store.extent;
    record.class_id = klass_store.class_id;
  }
}

void PendingStores::collect_all() {
  found_.clear();
  for (const auto& [address, record] : old_) found_.push_back(record);
  found_.insert(found_.end(), recent_.begin(), recent_.end());
  old_.clear();
  recent_.clear();
  std::stable_sort(found_.begin(), found_.end(),
                   [](const AccessRecord& a, const AccessRecord& b) { return a.t_ns < b.t_ns; });
}

}  // namespace classaccess
