// Rings -> rows and counts: takes the records of every thread, works out what each one
// touched, counts it and, up to max_events, keeps it as a row.
//
// While another process has the database locked all that goes on in memory: counts cost
// nothing there, rows up to WriterLimits::backlog_bytes; then the rings fill and the threads
// wait. Afterwards a backlog is written piece by piece between looks at the rings, and
// committed as a whole.
// Context: writer thread.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/store/call_rows.h"
#include "agent/store/catalog.h"
#include "agent/store/classify.h"
#include "agent/store/database.h"
#include "agent/store/diagnostics.h"
#include "agent/store/event_batch.h"
#include "agent/store/page_rows.h"
#include "agent/store/pending_stores.h"
#include "agent/store/tally.h"
#include "agent/store/thread_rows.h"
#include "agent/store/writer.h"

namespace classaccess {

class Drain {
 public:
  // Records of a thread whose `threads=` choice is open are kept up to this number;
  // beyond it the thread counts as recorded (its ring must not stay full: it may be
  // waiting for us before it can decide).
  static constexpr size_t kMaxUndecided = 1u << 18;

  Drain(Database& database, const WriterSources& sources, const WriterOptions& options, const RunInfo& run);

  bool prepare();

  // Takes what is in the rings and commits when it is time. Returns the number of records
  // taken and rows of a backlog written. After a database error: takes and counts them as
  // dropped, nothing else (so it throws nothing then).
  uint64_t round();
  // Commits now if anything has changed. False: an error, or the database is locked.
  bool commit();
  // The last words: threads that never decided, stores that never met an object, counters.
  // False like commit(); may be called again.
  bool finish();
  // Releases the statements and all memory; nothing but round() may be called after it.
  void finalize();

  PageRows& pages() { return pages_; }

  // The backlog has reached its limit: rings are not drained.
  bool full() const { return events_.bytes() >= limits_.backlog_bytes; }

 private:
  // What the writer knows of one ThreadState while it is in use.
  struct Stream {
    uint32_t thread_id = 0;
    uint32_t name_version = 0;
    bool has_row = false, assume_recorded = false;
    bool virtual_only = false;  // a carrier whose own accesses are not wanted
    ThreadRow row;
    PendingStores pending;
    uint32_t context = 0;  // of calls, that the records are made in now
    std::vector<AccessRecord> undecided;
  };

  Stream* stream_of(ThreadState& state);
  void take(ThreadState& state);
  void take_ring(ThreadState& state);
  void take_probes(ThreadState& state);
  void end_thread(ThreadState& state, Stream* stream);
  void update_thread(ThreadState& state, Stream* stream, bool has_records);
  void accept(Stream* stream, const AccessRecord& record);
  void decide(ThreadState& state, Stream* stream, bool last);
  void expire_pending(Stream* stream);
  uint32_t thread_of(const Stream& stream, const AccessRecord& record);
  void enter_context(Stream* stream, const AccessRecord& record);
  uint64_t take_calls();
  void identify_call_threads();
  void name_call_thread(const CallThread& thread);
  void update_virtual(uint32_t id);
  void emit(uint32_t thread_id, const AccessRecord& record);
  void emit_row(uint32_t thread_id, const AccessRecord& record, const AccessRow& row, const ClassInfo* klass);
  void write_event(uint32_t tally, const AccessRecord& record, const AccessRow& row, const TallyEntry& entry,
                   bool has_object, int64_t object, int64_t at);
  uint64_t commit_if_due();
  void give_up_if_full();
  void publish(uint64_t now);

  Database& database_;
  const WriterSources& sources_;
  const uint64_t started_ns_;
  const int64_t heap_start_;
  const uint64_t max_events_;
  const bool values_;
  const WriterLimits limits_;

  Catalog catalog_;
  Tally tally_;
  Diagnostics diagnostics_;
  EventBatch events_;
  WriterCounters counters_;
  ThreadRows threads_;
  PageRows pages_;
  CallRows calls_;
  uint32_t context_ = 0;  // of the record under way
  std::unordered_set<uint32_t> call_threads_named_;
  std::unordered_map<const CallThread*, uint64_t> call_threads_seen_;  // without a number, since when (ns)

  std::unordered_map<const ThreadState*, std::unique_ptr<Stream>> streams_;
  // What the `thread` row of a virtual thread said last, by VirtualThreads' id.
  struct VirtualRow {
    bool written = false;
    uint32_t name_version = 0, carrier_id = 0;
  };
  std::vector<VirtualRow> virtual_rows_;
  std::vector<AccessRecord> taken_;
  std::vector<AccessRow> rows_;
  bool changed_ = false, probes_due_ = false;
  uint64_t last_probes_ns_ = 0;
  uint64_t last_published_ns_ = 0;
  uint64_t last_commit_ns_ = 0, last_diagnostics_ns_ = 0, full_since_ns_ = 0, commit_interval_ns_;
};

}  // namespace classaccess
