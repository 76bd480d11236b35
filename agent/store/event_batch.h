// Rows of `event` on their way into the table, many with one statement.
//
// One INSERT for each row costs 1.1 us, more than half of it for starting and resetting
// the statement; INSERT .. SELECT from a virtual table over this array costs 0.4 us a row
// (measured with 3.40.1). The virtual table exists in our connection only, not in the file.
// Context: writer thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

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
  // Rows for one statement; and what is written at once of a backlog, so that the rings
  // are looked after in between.
  static constexpr size_t kRows = 2048, kPiece = 4 * kRows;

  // *this must stay where it is.
  bool prepare(Database& database);
  void finalize() {
    insert_.finalize();
    rows_.clear();
  }

  // Keeps the row. True when it is time for write_piece().
  bool add(const EventRow& row) {
    rows_.push_back(row);
    return rows_.size() % kRows == 0;
  }
  // Writes the oldest rows, up to kPiece. Needs a transaction.
  bool write_piece();
  bool write_all() {
    while (!rows_.empty()) {
      if (!write_piece()) return false;
    }
    return true;
  }

  size_t size() const { return rows_.size(); }
  size_t bytes() const { return rows_.size() * sizeof(EventRow); }

  // What the virtual table shows.
  const EventRow& row(size_t index) const { return rows_[index]; }
  size_t piece() const { return piece_; }

 private:
  std::deque<EventRow> rows_;
  size_t piece_ = 0;
  Statement insert_;
};

}  // namespace classaccess
