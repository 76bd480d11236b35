// The tables of calls=: from the call sink (calls/call_sink.h) to SQL, between two commits.
//
// A thread adds up its own calls; what has changed since the last look is added here, since a virtual thread or a
// number may have had several CallThreads. Single rows come in the order in which calls end, so that a call's row
// may name a parent_seq whose row is still to come; at the end those that never came are NULL.
//
// Memory: an entry for each (function, thread), for each (context, thread, class, op) since the last commit, and for
// each call under way that a row has named as its parent.
// Context: writer thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/calls/call_sink.h"
#include "agent/store/database.h"
#include "agent/store/native_symbols.h"
#include "agent/store/thread_rows.h"
#include "classaccess/record.h"

namespace classaccess {

class CallRows {
 public:
  // `max_rows`: of `call`. `started_ns`: of the recording, CLOCK_MONOTONIC.
  CallRows(uint64_t max_rows, uint64_t started_ns) : max_rows_(max_rows), started_ns_(started_ns) {}

  bool prepare(Database& database);
  void finalize();

  // Takes what the threads have, at every round. Returns the rows taken. update_thread(CallThread&): writes the
  // thread's row if it has none.
  template <typename UpdateThread>
  uint64_t take(UpdateThread&& update_thread) {
    uint64_t taken = 0;
    for_each_call_thread([&](CallThread& thread) {
      const uint32_t thread_id = thread.thread_id.load(std::memory_order_acquire);
      if (thread_id == 0) return;
      const uint64_t rows = take_thread(thread, thread_id);
      if (rows != 0 || made_row_) update_thread(thread);
      taken += rows;
    });
    return taken;
  }

  // An access made in `context` by the thread.
  void count(uint32_t context, uint32_t thread_id, uint32_t class_id, Op op, uint64_t times);

  bool has_changes() const { return !dirty_.empty() || !rows_.empty() || !classes_.empty() || functions_changed(); }
  // Writes what was taken. Needs a transaction. ensure_class(id): writes the class's row if it is not there yet.
  template <typename EnsureClass>
  bool flush(EnsureClass&& ensure_class) {
    if (!flush_functions() || !flush_calls() || !flush_stats()) return false;
    for (auto it = classes_.begin(); it != classes_.end(); it = classes_.erase(it)) {
      if (it->first.class_id != 0 && !ensure_class(it->first.class_id)) return false;
      if (!flush_class(it->first, it->second)) return false;
    }
    return true;
  }
  // The last flush has been made: parents that never came.
  bool forget_missing_parents();

  uint64_t rows() const { return row_count_; }
  uint64_t counted() const { return counted_; }

 private:
  struct StatKey {
    uint32_t function, thread_id;
    bool operator<(const StatKey& o) const {
      return function != o.function ? function < o.function : thread_id < o.thread_id;
    }
  };
  struct Total {
    uint64_t count = 0, untimed = 0, total = 0, self = 0, min = UINT64_MAX, max = 0;  // ticks
    bool dirty = false;
  };
  // What was seen last of a CallThread.
  struct Seen {
    uint32_t thread_id = 0;
    std::unordered_map<uint32_t, CallStat> stats;  // by function
    std::unordered_map<uint64_t, uint64_t> seqs;   // call number -> seq, of parents whose row is to come
  };
  struct ClassKey {
    uint32_t context, thread_id, class_id;
    Op op;
    bool operator==(const ClassKey&) const = default;
  };
  struct ClassHash {
    size_t operator()(const ClassKey& key) const {
      const uint64_t low = uint64_t{key.context} << 32 | key.thread_id;
      const uint64_t high = uint64_t{key.class_id} << 8 | static_cast<uint8_t>(key.op);
      return static_cast<size_t>((low ^ (high * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu >> 16);
    }
  };
  struct CallRow {
    CallRecord record;
    uint64_t seq, parent_seq;
    uint32_t thread_id;
  };

  uint64_t take_thread(CallThread& thread, uint32_t thread_id);
  void take_stat(const CallStat& stat, uint32_t thread_id, CallStat* last);
  void take_row(const CallRecord& record, uint32_t thread_id, Seen& seen);
  bool functions_changed() const;
  bool flush_functions();
  bool flush_calls();
  bool flush_stats();
  bool flush_class(const ClassKey& key, uint64_t times);
  bool ensure_caller(uint64_t address, int64_t* site_id);

  const uint64_t max_rows_, started_ns_;
  uint64_t row_count_ = 0, next_seq_ = 1;
  uint64_t counted_ = 0;  // calls, rows or not
  bool made_row_ = false;
  std::unordered_map<const CallThread*, Seen> seen_;
  std::map<StatKey, Total> totals_;
  std::vector<std::map<StatKey, Total>::iterator> dirty_;
  std::map<uint64_t, uint64_t> histogram_;  // function << 8 | log2 -> to be added
  std::deque<CallRow> rows_;
  std::unordered_map<ClassKey, uint64_t, ClassHash> classes_;
  struct FunctionRow {
    bool written = false, refused = false;
  };
  std::vector<FunctionRow> functions_;
  std::unordered_map<uint64_t, int64_t> callers_;  // address -> site id
  NativeSymbols symbols_;
  Statement function_, refuse_, call_, stat_, histogram_add_, class_, site_, parents_;
};

}  // namespace classaccess
