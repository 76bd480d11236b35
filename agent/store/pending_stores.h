// Stores of one thread into memory that no object covers yet (RecordKind::kPending):
// zeroing and mark words written before the Klass word. Each waits until a kKlassStore of
// the same thread covers its address.
// Context: writer thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "classaccess/record.h"

namespace classaccess {

class PendingStores {
 public:
  static constexpr size_t kLimit = 200000;

  void add(const AccessRecord& record) {
    recent_.push_back(record);
    gc_id_ = record.gc_id;
    if (recent_.size() >= kRecent) age();
  }

  // Takes out the stores inside [klass_store.object, + extent), oldest first, and hands
  // them to sink with that object and class.
  template <typename Sink>
  void resolve(const AccessRecord& klass_store, Sink&& sink) {
    if (empty()) return;
    collect(klass_store);
    for (const AccessRecord& record : found_) sink(record);
  }

  // Takes out all of them, oldest first.
  template <typename Sink>
  void expire(Sink&& sink) {
    collect_all();
    for (const AccessRecord& record : found_) sink(record);
  }

  bool empty() const { return recent_.empty() && old_.empty(); }
  bool full() const { return recent_.size() + old_.size() >= kLimit; }
  // A collection that started since has moved what the addresses meant.
  bool stale(uint32_t gc_id) const { return gc_id_ != gc_id && !empty(); }

 private:
  static constexpr size_t kRecent = 256;
  void age();
  void collect(const AccessRecord& klass_store);
  void collect_all();

  // The Klass store nearly always follows within a few records: those are searched one by
  // one, the rest by address.
  std::vector<AccessRecord> recent_;
  std::multimap<uint64_t, AccessRecord> old_;
  std::vector<AccessRecord> found_;
  uint32_t gc_id_ = 0;
};

}  // namespace classaccess
