#include "agent/store/diagnostics.h"

#include <time.h>

#include "agent/base/counters.h"
#include "agent/calls/call_sink.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/heap/claims.h"
#endif

namespace classaccess {
namespace {

#define CLASSACCESS_THREAD_COUNTERS(X)            \
  X(traps, "traps", "traps")                      \
  X(emulated, "emulated", "instructions")         \
  X(displaced, "displaced", "instructions")       \
  X(stepped, "stepped", "instructions")           \
  X(chained, "chained", "signals")                \
  X(probed, "probed", "accesses")                 \
  X(recorded, "recorded", "records")              \
  X(filtered, "filtered", "accesses")             \
  X(unresolved, "unresolved_at_trap", "accesses") \
  X(waits, "waits", "waits")                      \
  X(dropped, "dropped", "records")                \
  X(self_ns, "self_ns", "ns")

// The owner adds while we read; each value is whole, none is older than the last drain.
void add(ThreadCounters* sum, const ThreadCounters& counters) {
#define X(field, name, unit) sum->field += __atomic_load_n(&counters.field, __ATOMIC_RELAXED);
  CLASSACCESS_THREAD_COUNTERS(X)
#undef X
}

uint64_t thread_cpu_ns() {
  timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

bool Diagnostics::prepare(Database& database) {
  database_ = &database;
  return upsert_.prepare(database,
                         "INSERT INTO diagnostic(name, value, unit) VALUES(?,?,?) "
                         "ON CONFLICT(name) DO UPDATE SET value = excluded.value");
}

void Diagnostics::fold(const ThreadCounters& counters) { add(&ended_, counters); }

bool Diagnostics::update(ThreadPool& threads, const WriterCounters& writer, bool* changed) {
  ThreadCounters sum = ended_;
  threads.for_each([&](const ThreadState& state) { add(&sum, state.counters); });
  sum.dropped += writer.dropped;
#define X(field, name, unit) \
  if (!set(name, sum.field, unit, changed)) return false;
  CLASSACCESS_THREAD_COUNTERS(X)
#undef X
#define X(name, unit) \
  if (!set(#name, g_counters.name.load(std::memory_order_relaxed), unit, changed)) return false;
  CLASSACCESS_COUNTERS(X)
#undef X
#ifdef CLASSACCESS_VERIFY
  if (!set("verified", g_verify_counters.verified, "accesses", changed) ||
      !set("disagreements", g_verify_counters.disagreements, "accesses", changed) ||
      !set("unverified", g_verify_counters.unverified, "accesses", changed)) {
    return false;
  }
#endif
  if (writer.calls && !set_calls(writer.call_rows, changed)) return false;
  return set("accesses", writer.accesses, "accesses", changed) && set("events", writer.events, "rows", changed) &&
         set("unresolved", writer.unresolved, "accesses", changed) &&
         set("page_touches", writer.page_touches, "touches", changed) &&
         set("dictionary", writer.dictionary, "entries", changed) &&
         set("longest_commit_ns", writer.longest_commit_ns, "ns", changed) &&
         set("writer_ns", thread_cpu_ns(), "ns", changed);
}

// Own cost in picoseconds: ticks are shorter than a nanosecond.
bool Diagnostics::set_calls(uint64_t rows, bool* changed) {
  auto ps = [](uint64_t ticks) { return call_ns(ticks * 1000); };
  struct Value {
    const char* name;
    uint64_t value;
    const char* unit;
  };
  auto counted = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  const CallCounters& calls = g_call_counters;
  const Value values[] = {{"call_rows", rows, "rows"},
                          {"call_rows_dropped", counted(calls.rows_dropped), "rows"},
                          {"call_threads_full", counted(calls.threads_full), "calls"},
                          {"call_contexts_full", counted(calls.contexts_full), "calls"},
                          {"call_functions_full", counted(calls.functions_full), "functions"},
                          {"call_memory_full", counted(calls.memory_full), "calls"},
                          {"call_too_deep", counted(calls.too_deep), "calls"},
                          {"call_busy", counted(calls.busy), "calls"},
                          {"call_no_shadow", counted(calls.no_shadow), "calls"},
                          {"call_other_caller", counted(calls.other_caller), "calls"},
                          {"call_code_cache", counted(calls.code_cache), "calls"},
                          {"call_java_inside", ps(g_java_call_cost.inside), "ps"},
                          {"call_java_cost", ps(g_java_call_cost.whole), "ps"},
                          {"call_native_inside", ps(g_native_call_cost.inside), "ps"},
                          {"call_native_cost", ps(g_native_call_cost.whole), "ps"}};
  for (const Value& value : values) {
    if (!set(value.name, value.value, value.unit, changed)) return false;
  }
  return true;
}

bool Diagnostics::set(const char* name, uint64_t value, const char* unit, bool* changed) {
  auto it = last_.find(name);
  if (it != last_.end() && it->second == value) return true;
  if (!database_->begin()) return false;
  last_[name] = value;
  *changed = true;
  upsert_.bind_text(1, name);
  upsert_.bind(2, static_cast<int64_t>(value));
  upsert_.bind_text(3, unit);
  return upsert_.run();
}

}  // namespace classaccess
