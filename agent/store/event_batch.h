// Rows of `event` on their way into the table, many with one statement.
//
// One INSERT for each row costs 1.1 us, more than half of it for starting and resetting
// the statement; INSERT .. SELECT from a virtual table over this array costs 0.4 us a row
// (measured with 3.40.1). The virtual table exists in our connection only, not in the file.
// Context: writer thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/store/database.h"

namespace classaccess {

// As stored: see schema.h.
struct EventRow {
  enum Null : uint8_t { kObject = 1 << 3, kAt = 1 << 4, kSize = 1 << 5, kValue = 1 << 6 };
  int64_t column[7] = {};  // tally, t_ns, gc_id, object, at, size, value
  uint8_t nulls = 0;       // bit i: column i is NULL
};

class EventBatch {
 public:
  EventBatch() { rows_.reserve(kRows); }

  // *this must stay where it is.
  bool prepare(Database& database);
  void finalize() { insert_.finalize(); }

  // Keeps the row; writes all of them when there are enough. Needs a transaction.
  bool add(const EventRow& row) {
    rows_.push_back(row);
    return rows_.size() < kRows || flush();
  }
  bool flush();

  const std::vector<EventRow>& rows() const { return rows_; }

 private:
  static constexpr size_t kRows = 2048;
  std::vector<EventRow> rows_;
  Statement insert_;
};

}  // namespace classaccess
