#include "agent/store/call_rows.h"

#include <algorithm>

#include "agent/store/java_names.h"
#include "agent/store/tally.h"

namespace classaccess {
namespace {

// Sites of callers, apart from those that SiteTable numbers.
constexpr int64_t kFirstCallerSite = int64_t{1} << 30;

const char* ended_by_name(uint32_t ended_by) {
  switch (static_cast<EndedBy>(ended_by)) {
    case EndedBy::kReturn: return "return";
    case EndedBy::kException: return "exception";
    case EndedBy::kUnwound: return "unwound";
  }
  return "unwound";
}

// Those before are of earlier recordings.
uint32_t first_function() { return g_first_call_function.load(std::memory_order_acquire); }

int64_t signed_ns(uint64_t ticks) { return static_cast<int64_t>(call_ns(ticks)); }

}  // namespace

bool CallRows::prepare(Database& database) {
  return function_.prepare(database,
                           "INSERT INTO function(id, name, kind, library, address, loaded, refused) "
                           "VALUES(?,?,?,?,?,?,?)") &&
         refuse_.prepare(database, "UPDATE function SET refused = ? WHERE id = ?") &&
         call_.prepare(database,
                       "INSERT INTO call(seq, function_id, thread_id, start_ns, end_ns, self_ns, depth, parent_seq, "
                       "caller_site_id, ended_by) VALUES(?,?,?,?,?,?,?,?,?,?)") &&
         stat_.prepare(database,
                       "INSERT OR REPLACE INTO call_stat(function_id, thread_id, count, untimed, total_ns, self_ns, "
                       "min_ns, max_ns) VALUES(?,?,?,?,?,?,?,?)") &&
         histogram_add_.prepare(database,
                                "INSERT INTO call_histogram(function_id, log2_ns, count) VALUES(?,?,?) "
                                "ON CONFLICT(function_id, log2_ns) DO UPDATE SET count = count + excluded.count") &&
         class_.prepare(database,
                        "INSERT INTO call_class_count(function_id, thread_id, class_id, op, count) VALUES(?,?,?,?,?) "
                        "ON CONFLICT(function_id, thread_id, coalesce(class_id, 0), op) "
                        "DO UPDATE SET count = count + excluded.count") &&
         site_.prepare(database, "INSERT INTO site(id, pc, kind, library, symbol) VALUES(?,?,'native',?,?)") &&
         parents_.prepare(database,
                          "UPDATE call SET parent_seq = NULL WHERE parent_seq IS NOT NULL AND "
                          "NOT EXISTS (SELECT 1 FROM call p WHERE p.seq = call.parent_seq)");
}

void CallRows::finalize() {
  for (Statement* statement : {&function_, &refuse_, &call_, &stat_, &histogram_add_, &class_, &site_, &parents_}) {
    statement->finalize();
  }
  rows_.clear();
  seen_.clear();
}

uint64_t CallRows::take_thread(CallThread& thread, uint32_t thread_id) {
  // Phase before the rest: what it did before it ended is then there.
  const bool ended = thread.phase.load(std::memory_order_acquire) == 2;
  Seen& seen = seen_[&thread];
  if (seen.thread_id != thread_id) seen = {};
  seen.thread_id = thread_id;
  made_row_ = false;
  uint64_t taken = thread.ring->drain([&](const CallRecord& record) { take_row(record, thread_id, seen); });
  const uint32_t functions = g_call_functions.end();
  for (uint32_t id = first_function(); id < functions; ++id) {
    const CallStat* stat = thread.stat(id);
    if (stat == nullptr) {
      id |= CallThread::kStatsInBlock - 1;  // none of the block
      continue;
    }
    if (stat->count == 0 && stat->untimed == 0) continue;
    take_stat(*stat, thread_id, &seen.stats[id]);
  }
  if (ended) {
    seen_.erase(&thread);
    recycle_call_thread(&thread);
  }
  return taken;
}

void CallRows::take_stat(const CallStat& now, uint32_t thread_id, CallStat* last) {
  if (now.count == last->count && now.untimed == last->untimed && now.total == last->total) return;
  // Its thread writes meanwhile: each word is read once, or calls would be lost between two reads.
  CallStat stat;
  auto* to = reinterpret_cast<uint64_t*>(&stat);
  const auto* from = reinterpret_cast<const uint64_t*>(&now);
  static_assert(sizeof(CallStat) % 8 == 0);
  for (size_t i = 0; i < sizeof(CallStat) / 8; ++i) to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
  auto [at, is_new] = totals_.try_emplace({stat.function, thread_id});
  Total& total = at->second;
  made_row_ |= is_new;
  counted_ += stat.count + stat.untimed - last->count - last->untimed;
  total.count += stat.count - last->count;
  total.untimed += stat.untimed - last->untimed;
  total.total += stat.total - last->total;
  total.self += stat.self - last->self;
  if (stat.count != 0) {
    total.min = std::min(total.min, stat.min);
    total.max = std::max(total.max, stat.max);
  }
  for (uint64_t log2 = 0; log2 < CallStat::kBuckets; ++log2) {
    const uint64_t more = stat.histogram[log2] - last->histogram[log2];
    if (more != 0) histogram_[uint64_t{stat.function} << 8 | log2] += more;
  }
  *last = stat;
  if (!total.dirty) dirty_.push_back(at);
  total.dirty = true;
}

void CallRows::take_row(const CallRecord& record, uint32_t thread_id, Seen& seen) {
  auto seq_of = [&](uint64_t number) {
    auto [at, is_new] = seen.seqs.try_emplace(number, next_seq_);
    if (is_new) ++next_seq_;
    return at->second;
  };
  if (row_count_ >= max_rows_) {
    seen.seqs.clear();
    return;
  }
  CallRow row{record, seq_of(record.number), record.parent != 0 ? seq_of(record.parent) : 0, thread_id};
  seen.seqs.erase(record.number);
  rows_.push_back(row);
  if (++row_count_ == max_rows_) g_call_rows.store(false, std::memory_order_relaxed);
}

void CallRows::count(uint32_t context, uint32_t thread_id, uint32_t class_id, Op op, uint64_t times) {
  classes_[{context, thread_id, class_id, op}] += times;
}

bool CallRows::functions_changed() const {
  const uint32_t end = g_call_functions.end();
  for (uint32_t id = first_function(); id < end; ++id) {
    const CallFunction& function = g_call_functions.row(id);
    if (!function.ready.load(std::memory_order_acquire)) continue;
    if (id >= functions_.size() || !functions_[id].written) return true;
    if (!functions_[id].refused && function.refused.load(std::memory_order_acquire) != nullptr) return true;
  }
  return false;
}

bool CallRows::flush_functions() {
  const uint32_t end = g_call_functions.end();
  if (functions_.size() < end) functions_.resize(end);
  for (uint32_t id = first_function(); id < end; ++id) {
    const CallFunction& function = g_call_functions.row(id);
    FunctionRow& row = functions_[id];
    if (!function.ready.load(std::memory_order_acquire)) continue;
    const char* refused = function.refused.load(std::memory_order_acquire);
    if (row.written && (row.refused || refused == nullptr)) continue;
    Statement& statement = row.written ? refuse_ : function_;
    if (row.written) {
      refuse_.bind_text(1, refused);
      refuse_.bind(2, id);
    } else {
      function_.bind(1, id);
      function_.bind_text(2, utf8_from_modified(function.name));
      function_.bind_text(3, function.kind == FunctionKind::kJava ? "java" : "native");
      function_.bind_text_or_null(4, function.library);
      function_.bind_or_null(5, static_cast<int64_t>(function.address), function.address != 0);
      function_.bind_text(6, function.loaded == Loaded::kAlready ? "already" : "later");
      function_.bind_text_or_null(7, refused != nullptr ? refused : "");
    }
    row = {true, refused != nullptr};
    if (!statement.run()) return false;
  }
  return true;
}

bool CallRows::ensure_caller(uint64_t address, int64_t* site_id) {
  auto [at, is_new] = callers_.try_emplace(address, kFirstCallerSite + static_cast<int64_t>(callers_.size()));
  *site_id = at->second;
  if (!is_new) return true;
  const NativeSymbol symbol = symbols_.find(address);
  site_.bind(1, at->second);
  site_.bind(2, static_cast<int64_t>(address));
  site_.bind_text_or_null(3, symbol.library);
  site_.bind_text_or_null(4, symbol.symbol);
  return site_.run();
}

// Each entry leaves memory when it is written: after a lock the rest is for the next call.
bool CallRows::flush_calls() {
  for (; !rows_.empty(); rows_.pop_front()) {
    const CallRow& row = rows_.front();
    const CallRecord& record = row.record;
    int64_t caller = 0;
    if (record.caller != 0 && !ensure_caller(record.caller, &caller)) return false;
    const auto start = static_cast<int64_t>(call_ns_since_boot(record.start) - started_ns_);
    call_.bind(1, static_cast<int64_t>(row.seq));
    call_.bind(2, record.function);
    call_.bind(3, row.thread_id);
    call_.bind(4, start);
    call_.bind(5, start + signed_ns(record.total));
    call_.bind(6, signed_ns(record.self));
    call_.bind(7, record.depth);
    call_.bind_or_null(8, static_cast<int64_t>(row.parent_seq), row.parent_seq != 0);
    call_.bind_or_null(9, caller, record.caller != 0);
    call_.bind_text(10, ended_by_name(record.ended_by));
    if (!call_.run()) return false;
  }
  return true;
}

bool CallRows::flush_stats() {
  for (; !dirty_.empty(); dirty_.pop_back()) {
    const StatKey& key = dirty_.back()->first;
    Total& total = dirty_.back()->second;
    const bool timed = total.count != 0;
    stat_.bind(1, key.function);
    stat_.bind(2, key.thread_id);
    stat_.bind(3, static_cast<int64_t>(total.count + total.untimed));
    stat_.bind(4, static_cast<int64_t>(total.untimed));
    stat_.bind(5, signed_ns(total.total));
    stat_.bind(6, signed_ns(total.self));
    stat_.bind_or_null(7, signed_ns(total.min), timed);
    stat_.bind_or_null(8, signed_ns(total.max), timed);
    if (!stat_.run()) return false;
    total.dirty = false;
  }
  for (auto it = histogram_.begin(); it != histogram_.end(); it = histogram_.erase(it)) {
    histogram_add_.bind(1, static_cast<int64_t>(it->first >> 8));
    histogram_add_.bind(2, static_cast<int64_t>(it->first & 0xff));
    histogram_add_.bind(3, static_cast<int64_t>(it->second));
    if (!histogram_add_.run()) return false;
  }
  return true;
}

bool CallRows::flush_class(const ClassKey& key, uint64_t times) {
  for (uint32_t context = key.context; context != 0; context = g_call_contexts.row(context).outer) {
    class_.bind(1, g_call_contexts.row(context).function);
    class_.bind(2, key.thread_id);
    class_.bind_or_null(3, key.class_id, key.class_id != 0);
    class_.bind_text(4, op_name(key.op));
    class_.bind(5, static_cast<int64_t>(times));
    if (!class_.run()) return false;
  }
  return true;
}

bool CallRows::forget_missing_parents() { return row_count_ == 0 || parents_.run(); }

}  // namespace classaccess
