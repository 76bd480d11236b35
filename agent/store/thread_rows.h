// The `thread` table. Rows that are new or have changed wait in memory for the next
// commit, like everything else the writer takes in.
// Context: writer thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/store/database.h"

namespace classaccess {

struct ThreadRow {
  uint32_t id = 0;
  int32_t tid = 0;          // 0: NULL
  uint32_t carrier_id = 0;  // 0: NULL
  std::string name;         // UTF-8; empty: NULL, or '' of a virtual thread, which need not have one
  bool may_be_unnamed = false;
  const char* kind = "";   // a literal
  int64_t started_ns = 0;  // since run.started_at, like ended_ns
  int64_t ended_ns = 0;
  bool has_ended = false;
};

class ThreadRows {
 public:
  bool prepare(Database& database);
  void finalize() { upsert_.finalize(); }

  void put(const ThreadRow& row) { changed_[row.id] = row; }
  // Writes what was put. Needs a transaction.
  bool flush();

 private:
  std::map<uint32_t, ThreadRow> changed_;
  Statement upsert_;
};

}  // namespace classaccess
