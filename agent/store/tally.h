// The exact counts, and the dictionary of what single rows share: one entry for each
// (thread, site, class, field, part, op). Entries are in memory; those that changed go to
// the `tally` table in the transaction that holds the rows that use them, so at any time
// every row joins and, as long as all accesses are kept as rows, counts and rows agree.
// Context: writer thread.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/store/database.h"
#include "classaccess/record.h"

namespace classaccess {

struct TallyKey {
  uint32_t thread_id = 0, site_id = 0, class_id = 0, field_id = 0;
  Part part = Part::kUnknown;
  Op op = Op::kLoad;
  bool operator==(const TallyKey&) const = default;
};

struct TallyEntry {
  TallyKey key;
  bool stored = false, dirty = false;
  uint32_t size = 0;  // of the first access: what most rows have
  int64_t at = 0;     // address - object of the first access
  int32_t base = -1;  // elements: header bytes and log2 of the element size; -1: no element
  int32_t shift = -1;
  uint64_t count = 0, bytes = 0;
};

class Tally {
 public:
  Tally();

  // The entry's id (from 1), made if need be: *is_new tells, then the caller fills size,
  // at, base and shift.
  uint32_t find_or_add(const TallyKey& key, bool* is_new);
  TallyEntry& entry(uint32_t id) { return entries_[id - 1]; }

  void add(uint32_t id, uint32_t bytes, uint64_t times = 1) {
    TallyEntry& e = entries_[id - 1];
    e.count += times;
    e.bytes += bytes * times;
    if (!e.dirty) {
      e.dirty = true;
      dirty_.push_back(id);
    }
  }

  bool prepare(Database& database);
  void finalize();
  // Writes what changed. before_new(key) is called for each entry that was never written:
  // it puts the rows the entry refers to in place.
  template <typename BeforeNew>
  bool flush(BeforeNew&& before_new) {
    sort_dirty();
    for (uint32_t id : dirty_) {
      TallyEntry& e = entry(id);
      if (!e.stored && !before_new(e.key)) return false;
      if (!write(id, &e)) return false;
    }
    dirty_.clear();
    return true;
  }

 private:
  void sort_dirty();
  bool write(uint32_t id, TallyEntry* entry);
  void grow();

  std::vector<TallyEntry> entries_;
  std::vector<uint64_t> slots_;  // open addressing: upper half of the hash, id; 0 = free
  std::vector<uint32_t> dirty_;
  Statement insert_, update_;
};

const char* part_name(Part part);  // null for kUnknown
const char* op_name(Op op);

}  // namespace classaccess
