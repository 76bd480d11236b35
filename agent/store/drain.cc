#include "agent/store/drain.h"

#include <string.h>

#include <algorithm>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/store/java_names.h"

namespace classaccess {
namespace {

// A kill -9 costs what was not committed yet: the interval and the commit itself. The
// interval grows with what a commit costs, but not so far that the two make a second.
constexpr uint64_t kCommitNs = 200000000, kMaxCommitNs = 400000000;
constexpr uint64_t kDiagnosticsNs = 1000000000;
constexpr uint64_t kProbesNs = 300000000;

// The name under its seqlock; false while the owner is writing it.
template <typename State>
bool read_name(const State& state, uint32_t* version, std::string* name) {
  uint32_t before = state.name_version.load(std::memory_order_acquire);
  if (before % 2 != 0) return false;
  char copy[sizeof(state.name)];
  memcpy(copy, state.name, sizeof(copy));
  std::atomic_thread_fence(std::memory_order_acquire);
  if (state.name_version.load(std::memory_order_relaxed) != before) return false;
  *version = before;
  *name = utf8_from_modified({copy, strnlen(copy, sizeof(copy))});
  return true;
}

const char* thread_kind_name(ThreadKind kind) {
  return kind == ThreadKind::kPlatform ? "platform" : kind == ThreadKind::kCarrier ? "carrier" : "virtual";
}

}  // namespace

Drain::Drain(Database& database, const WriterSources& sources, const WriterOptions& options, const RunInfo& run)
    : database_(database),
      sources_(sources),
      started_ns_(run.started_ns),
      heap_start_(static_cast<int64_t>(run.heap_start)),
      max_events_(options.max_events),
      values_(options.values),
      limits_(options.limits),
      catalog_(database, sources, run.started_ns),
      calls_(options.max_events, run.started_ns),
      commit_interval_ns_(kCommitNs) {
  taken_.reserve(SpscRing::kCapacity);
  g_single_rows.store(max_events_ > 0, std::memory_order_relaxed);
}

bool Drain::prepare() {
  return catalog_.prepare() && tally_.prepare(database_) && diagnostics_.prepare(database_) &&
         events_.prepare(database_) && threads_.prepare(database_) && pages_.prepare(database_) &&
         calls_.prepare(database_);
}

void Drain::finalize() {
  catalog_.finalize();
  tally_.finalize();
  diagnostics_.finalize();
  events_.finalize();
  threads_.finalize();
  pages_.finalize();
  calls_.finalize();
  streams_.clear();
}

uint64_t Drain::round() {
  uint64_t taken = 0, now = monotonic_ns();
  probes_due_ = now - last_probes_ns_ >= kProbesNs;
  if (probes_due_) last_probes_ns_ = now;
  const bool contents = pages_.take_contents();
  sources_.threads->for_each([&](ThreadState& state) {
    if (database_.failed() || !full()) {
      take(state);
      taken += taken_.size();
    }
    taken += commit_if_due();
  });
  if (contents) pages_.contents_taken();
  if (!database_.failed()) {
    taken += take_calls();
    catalog_.update_collections(&changed_);
    taken += commit_if_due();
    give_up_if_full();
  }
  publish(now);
  return taken;
}

// Somebody forgot a transaction, or the one who holds it waits for a thread that waits
// for us.
void Drain::give_up_if_full() {
  if (!full() || !database_.locked()) {
    full_since_ns_ = 0;
  } else if (full_since_ns_ == 0) {
    full_since_ns_ = monotonic_ns();
  } else if (monotonic_ns() - full_since_ns_ >= limits_.full_seconds * 1000000000u) {
    database_.fail("another process keeps it locked, and the memory for what waits is full");
  }
}

Drain::Stream* Drain::stream_of(ThreadState& state) {
  std::unique_ptr<Stream>& stream = streams_[&state];
  if (stream == nullptr || stream->thread_id != state.thread_id) {
    stream = std::make_unique<Stream>();
    stream->thread_id = state.thread_id;
  }
  return stream.get();
}

void Drain::take(ThreadState& state) {
  // Phase and choice before the ring: what was pushed before they changed is then in it.
  bool ended = state.phase.load(std::memory_order_acquire) == ThreadPhase::kEnded;
  ThreadChoice choice = state.choice.load(std::memory_order_acquire);
  // Copied out first, so that a thread with a full ring goes on while SQLite works.
  taken_.clear();
  take_ring(state);
  if (probes_due_) take_probes(state);
  if (database_.failed()) {
    counters_.dropped += taken_.size();
    if (ended) sources_.threads->recycle(&state);
    return;
  }
  Stream* stream = stream_of(state);
  if (choice == ThreadChoice::kExcluded) {
    stream->undecided.clear();
  } else if (choice == ThreadChoice::kUndecided && !stream->assume_recorded) {
    stream->undecided.insert(stream->undecided.end(), taken_.begin(), taken_.end());
    if (ended || stream->undecided.size() > kMaxUndecided) {
      stream->assume_recorded = true;
      std::vector<AccessRecord> kept = std::move(stream->undecided);
      stream->undecided.clear();
      update_thread(state, stream, !kept.empty());
      for (const AccessRecord& record : kept) accept(stream, record);
    }
  } else {
    stream->virtual_only = choice == ThreadChoice::kVirtualOnly;
    bool has_records = !taken_.empty() || !stream->undecided.empty();
    update_thread(state, stream, has_records);
    for (const AccessRecord& record : stream->undecided) accept(stream, record);
    stream->undecided.clear();
    for (const AccessRecord& record : taken_) accept(stream, record);
  }
  if (ended) end_thread(state, stream);
}

void Drain::take_ring(ThreadState& state) {
  state.ring.drain([this](const AccessRecord& record) { taken_.push_back(record); });
}

// A thread that does not trap for a while, or sleeps, has records that nobody has looked at.
void Drain::take_probes(ThreadState& state) {
  if (sources_.collect_probes == nullptr) return;
  auto empty = [](void* self, ThreadState* thread) { static_cast<Drain*>(self)->take_ring(*thread); };
  sources_.collect_probes(&state, empty, this);
}

// The thread's row: made at its first record or name, kept up with its name.
void Drain::update_thread(ThreadState& state, Stream* stream, bool has_records) {
  uint32_t version = state.name_version.load(std::memory_order_relaxed);
  if (stream->has_row ? version == stream->name_version : version == 0 && !has_records) return;
  bool named = read_name(state, &version, &stream->row.name);
  if (stream->has_row && !named) return;
  stream->name_version = named ? version : 0;
  stream->has_row = true;
  stream->row.id = stream->thread_id;
  stream->row.tid = state.tid;
  stream->row.kind = thread_kind_name(state.kind);
  stream->row.started_ns = static_cast<int64_t>(state.started_ns - started_ns_);
  threads_.put(stream->row);
  changed_ = true;
}

uint32_t Drain::thread_of(const Stream& stream, const AccessRecord& record) {
  if (record.virtual_id == 0 || sources_.virtual_threads == nullptr) return stream.thread_id;
  update_virtual(record.virtual_id);
  return sources_.virtual_threads->row(record.virtual_id).thread_id;
}

void Drain::update_virtual(uint32_t id) {
  const VirtualThread& thread = sources_.virtual_threads->row(id);
  if (id >= virtual_rows_.size()) virtual_rows_.resize(std::max<size_t>(id + 1, 2 * virtual_rows_.size()));
  VirtualRow& known = virtual_rows_[id];
  uint32_t carrier_id = thread.carrier_id.load(std::memory_order_relaxed);
  uint32_t version = thread.name_version.load(std::memory_order_relaxed);
  if (known.written && known.name_version == version && known.carrier_id == carrier_id) return;
  ThreadRow row;
  bool named = read_name(thread, &version, &row.name);
  if (known.written && !named) return;  // at its next record, or at the end
  known = {true, named ? version : 0, carrier_id};
  row.id = thread.thread_id;
  row.kind = "virtual";
  row.may_be_unnamed = true;
  row.carrier_id = carrier_id;
  row.started_ns = static_cast<int64_t>(thread.started_ns - started_ns_);
  threads_.put(row);
  changed_ = true;
}

void Drain::end_thread(ThreadState& state, Stream* stream) {
  context_ = 0;
  expire_pending(stream);
  if (stream->has_row) {
    uint64_t ended = state.ended_ns.load(std::memory_order_acquire);
    stream->row.ended_ns = static_cast<int64_t>(ended - started_ns_);
    stream->row.has_ended = ended != 0;
    threads_.put(stream->row);
    changed_ = true;
  }
  diagnostics_.fold(state.counters);
  streams_.erase(&state);
  sources_.threads->recycle(&state);
}

void Drain::accept(Stream* stream, const AccessRecord& record) {
  PendingStores& pending = stream->pending;
  context_ = 0;
  if (sources_.calls) enter_context(stream, record);
  if (stream->virtual_only && record.virtual_id == 0) return;
  if (pending.stale(record.gc_id) || pending.full()) expire_pending(stream);
  switch (record.kind) {
    case RecordKind::kPending: pending.add(record); break;
    case RecordKind::kCallContext: break;
    case RecordKind::kPage:
      pages_.take(thread_of(*stream, record), record, started_ns_);
      ++counters_.page_touches;
      changed_ = true;
      break;
    case RecordKind::kKlassStore: {
      bool selected = (record.flags & kFlagSelected) != 0;
      auto explain = [&](AccessRecord store) {
        if (!selected) return;
        store.kind = RecordKind::kKlassStore;  // classified as part init
        emit(thread_of(*stream, store), store);
      };
      // A repeat stands for objects that had no stores before.
      if ((record.flags & kFlagRepeat) == 0) pending.resolve(record, explain);
      if (selected) emit(thread_of(*stream, record), record);
      break;
    }
    case RecordKind::kAccess: {
      AccessRecord access = record;
      if (record.op == Op::kRmw && catalog_.only_stores(record.site_id)) access.op = Op::kStore;
      emit(thread_of(*stream, record), access);
      break;
    }
  }
}

void Drain::expire_pending(Stream* stream) {
  stream->pending.expire([&](AccessRecord store) {
    store.kind = RecordKind::kAccess;
    store.object = 0;
    store.extent = 0;
    store.class_id = 0;
    emit(thread_of(*stream, store), store);
  });
}

void Drain::emit(uint32_t thread_id, const AccessRecord& record) {
  const ClassInfo* klass = nullptr;
  const FieldSet* fields = nullptr;
  if (record.class_id != 0 && record.class_id < sources_.classes->end()) {
    klass = &sources_.classes->row(record.class_id);
    fields = klass->fields.load(std::memory_order_acquire);
  }
  uint8_t bytecode = 0;
  if (record.site_id != 0 && record.site_id < sources_.sites->end()) {
    const SiteInfo& site = sources_.sites->row(record.site_id);
    if (!site.stores_data.load(std::memory_order_relaxed)) bytecode = site.bytecode;
  }
  rows_.clear();
  classify(record, klass, fields, bytecode, *sources_.layout, &rows_);
  for (const AccessRow& row : rows_) emit_row(thread_id, record, row, klass);
}

void Drain::emit_row(uint32_t thread_id, const AccessRecord& record, const AccessRow& row, const ClassInfo* klass) {
  // As stored: see schema.h.
  bool has_object = row.class_id != 0 && record.object != 0;
  int64_t object = has_object ? (static_cast<int64_t>(record.object) - heap_start_) >> 3 : 0;
  int64_t at = static_cast<int64_t>(row.address) - heap_start_ - object * 8;

  bool is_new = false;
  uint32_t id =
      tally_.find_or_add({thread_id, record.site_id, row.class_id, row.field_id, row.part, record.op}, &is_new);
  TallyEntry& entry = tally_.entry(id);
  if (is_new) {
    ++counters_.dictionary;
    entry.size = row.size;
    entry.at = at;
    if (row.part == Part::kElement) {
      entry.base = static_cast<int32_t>(array_header_bytes(klass->layout_helper));
      entry.shift = static_cast<int32_t>(array_log2_element(klass->layout_helper));
    }
  }
  const bool repeat = (record.flags & kFlagRepeat) != 0;
  const uint64_t times = repeat ? record.value : 1;
  tally_.add(id, row.size, times);
  changed_ = true;
  counters_.accesses += times;
  if (row.class_id == 0) counters_.unresolved += times;
  if (context_ != 0) calls_.count(context_, thread_id, row.class_id, record.op, times);
  if (counters_.events < max_events_ && !repeat) {
    if (counters_.events + 1 == max_events_) g_single_rows.store(false, std::memory_order_relaxed);
    ++counters_.events;
    write_event(id, record, row, entry, has_object, object, at);
  }
}

void Drain::write_event(uint32_t tally, const AccessRecord& record, const AccessRow& row, const TallyEntry& entry,
                        bool has_object, int64_t object, int64_t at) {
  EventRow event;
  event.column[0] = tally;
  event.column[1] = static_cast<int64_t>(record.t_ns - started_ns_);
  event.column[2] = record.gc_id;
  event.column[3] = object;
  event.column[4] = at;
  event.column[5] = row.size;
  if (!has_object) event.nulls |= EventRow::kObject;
  if (at == entry.at) event.nulls |= EventRow::kAt;
  if (row.size == entry.size) event.nulls |= EventRow::kSize;
  // The value of a row that is a piece of the access: its bytes, if they are all known.
  uint64_t skip = row.address - record.address;
  bool has_value =
      values_ && (record.flags & kFlagValue) != 0 && record.size <= 8 && skip < 8 && row.size <= 8 && row.size != 0;
  if (has_value) {
    uint64_t mask = row.size < 8 ? (uint64_t{1} << row.size * 8) - 1 : ~uint64_t{0};
    event.column[6] = static_cast<int64_t>(record.value >> skip * 8 & mask);
  } else {
    event.nulls |= EventRow::kValue;
  }
  if (events_.add(event) && database_.begin()) (void)events_.write_piece();  // the error is kept in database_
}

uint64_t Drain::commit_if_due() {
  if (database_.failed()) return 0;
  uint64_t now = monotonic_ns();
  if (now - last_diagnostics_ns_ >= kDiagnosticsNs) {
    last_diagnostics_ns_ = now;
    diagnostics_.update(*sources_.threads, counters_, &changed_);
  }
  if (!changed_ || now - last_commit_ns_ < commit_interval_ns_) return 0;
  uint64_t written = 0;
  if (events_.size() > EventBatch::kPiece) {
    if (!database_.begin() || !events_.write_piece()) return 0;
    written = EventBatch::kPiece;
    if (events_.size() > EventBatch::kPiece) return written;
  }
  commit();
  return written;
}

bool Drain::commit() {
  changed_ |= pages_.has_changes() || (sources_.calls && calls_.has_changes());
  if (!changed_) return !database_.failed();
  uint64_t start = monotonic_ns();
  // Collections first: rows may carry the id of one that started a moment ago.
  if (!database_.begin() || !catalog_.update_collections(&changed_)) return false;
  bool flushed = events_.write_all() && threads_.flush() && tally_.flush([this](const TallyKey& key) {
    return catalog_.ensure_site(key.site_id) && catalog_.ensure_class(key.class_id);
  }) && pages_.flush([this](uint32_t class_id) { return catalog_.ensure_class(class_id); });
  if (flushed && sources_.calls) flushed = calls_.flush([this](uint32_t id) { return catalog_.ensure_class(id); });
  if (!flushed || !database_.commit()) return false;
  changed_ = false;
  last_commit_ns_ = monotonic_ns();
  uint64_t took = last_commit_ns_ - start;
  counters_.longest_commit_ns = std::max(counters_.longest_commit_ns, took);
  commit_interval_ns_ = std::clamp(took * 4, kCommitNs, kMaxCommitNs);
  return true;
}

bool Drain::finish() {
  context_ = 0;
  sources_.threads->for_each([&](ThreadState& state) {
    if (database_.failed()) return;
    Stream* stream = stream_of(state);
    if (state.choice.load(std::memory_order_acquire) != ThreadChoice::kExcluded && !stream->undecided.empty()) {
      std::vector<AccessRecord> kept = std::move(stream->undecided);
      stream->undecided.clear();
      update_thread(state, stream, true);
      for (const AccessRecord& record : kept) accept(stream, record);
    }
    expire_pending(stream);
  });
  for (uint32_t id = 1; id < virtual_rows_.size(); ++id) {
    if (virtual_rows_[id].written) update_virtual(id);
  }
  // Twice: the first commit writes dictionary rows, the counters tell about it.
  if (!commit()) return false;
  changed_ = true;
  return database_.begin() && catalog_.complete_classes() && calls_.forget_missing_parents() &&
         diagnostics_.update(*sources_.threads, counters_, &changed_) && commit();
}

}  // namespace classaccess
