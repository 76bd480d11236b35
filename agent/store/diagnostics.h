// The `diagnostic` table: counters of all threads, of the process and of the writer.
// Context: writer thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/fault/thread_pool.h"
#include "agent/store/database.h"

namespace classaccess {

// What the writer itself counts.
struct WriterCounters {
  uint64_t accesses = 0;           // recorded: the sum of access_count.count
  uint64_t events = 0;             // rows of `access`
  uint64_t unresolved = 0;         // accesses with class_id NULL
  uint64_t dropped = 0;            // drained to nowhere after the database failed
  uint64_t page_touches = 0;       // mode=pages: the sum of page_access.count
  uint64_t dictionary = 0;         // entries of `tally`
  bool calls = false;              // calls= was given
  uint64_t call_rows = 0;          // rows of `call`
  uint64_t longest_commit_ns = 0;  // checkpoint included: no ring is drained meanwhile
};

class Diagnostics {
 public:
  bool prepare(Database& database);
  void finalize() { upsert_.finalize(); }

  // Adds the counters of a thread that has ended to the totals.
  void fold(const ThreadCounters& counters);
  // Writes the rows that changed. *changed is set if there are any. False: an error, or
  // the database is locked and the rest is for the next call.
  bool update(ThreadPool& threads, const WriterCounters& writer, bool* changed);
  uint64_t dropped_by_threads() const { return ended_.dropped; }

 private:
  bool set_calls(uint64_t rows, bool* changed);
  bool set(const char* name, uint64_t value, const char* unit, bool* changed);

  Database* database_ = nullptr;
  Statement upsert_;
  ThreadCounters ended_;
  std::map<std::string, uint64_t> last_;
};

}  // namespace classaccess
