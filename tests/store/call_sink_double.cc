#include "call_sink_double.h"

#include <new>

namespace classaccess {

// Doubles of the sink's tables; a tick is a nanosecond.
AppendTable<CallFunction> g_call_functions;
AppendTable<CallContext> g_call_contexts;
std::atomic<uint32_t> g_first_call_function{1};
CallThread* g_call_threads = nullptr;
std::atomic<uint32_t> g_call_threads_end{0};
std::atomic<bool> g_call_rows{true};
CallCounters g_call_counters;
CallCost g_native_call_cost, g_java_call_cost;

uint64_t call_ns(uint64_t ticks) { return ticks; }
uint64_t call_ns_since_boot(uint64_t ticks) { return ticks; }
void recycle_call_thread(CallThread* thread) { thread->phase.store(0); }

CallWorld::CallWorld() {
  g_call_functions.create(1024);
  g_call_contexts.create(1024);
  g_call_threads = new CallThread[16];
  g_call_threads_end.store(0);
  g_call_rows.store(true);
}

CallWorld::~CallWorld() {
  for (uint32_t i = 0; i < g_call_threads_end.load(); ++i) {
    delete g_call_threads[i].ring;
    delete[] g_call_threads[i].stats[0].load();
    delete[] g_call_threads[i].stats;
  }
  g_call_threads_end.store(0);
  delete[] g_call_threads;
}

uint32_t CallWorld::add_function(FunctionKind kind, const char* name, const char* refused) {
  const uint32_t id = g_call_functions.claim();
  CallFunction& function = *new (&g_call_functions.row(id)) CallFunction;
  function.kind = kind;
  function.name = name;
  if (kind == FunctionKind::kNative) {
    function.library = "libz.so.1";
    function.address = 0x7f0000001000;
  }
  function.refused.store(refused);
  function.ready.store(true);
  return id;
}

uint32_t CallWorld::add_context(uint32_t outer, uint32_t function) {
  const uint32_t id = g_call_contexts.claim();
  CallContext& context = *new (&g_call_contexts.row(id)) CallContext;
  context.outer = outer;
  context.function = function;
  context.ready.store(true);
  return id;
}

CallThread* CallWorld::add_thread(uint32_t thread_id, int32_t tid) {
  CallThread& thread = *new (&g_call_threads[g_call_threads_end.load()]) CallThread;
  thread.thread_id.store(thread_id);
  thread.tid = tid;
  thread.ring = new CallRing;
  thread.stats = new std::atomic<CallStat*>[kMaxCallFunctions / CallThread::kStatsInBlock] {};
  auto* block = new CallStat[CallThread::kStatsInBlock];
  thread.stats[0].store(block);
  for (uint32_t i = 0; i < CallThread::kStatsInBlock; ++i) block[i].function = i;
  thread.phase.store(1);
  g_call_threads_end.fetch_add(1);
  return &thread;
}

void CallWorld::call(CallThread* thread, uint32_t function, uint64_t start, uint64_t total, uint64_t self,
                     uint64_t number, uint64_t parent, EndedBy ended_by) {
  CallStat& stat = thread->stats[0].load()[function];
  if (stat.count++ == 0 || total < stat.min) stat.min = total;
  if (total > stat.max) stat.max = total;
  stat.total += total;
  stat.self += self;
  ++stat.by_ended[static_cast<int>(ended_by)];
  ++stat.histogram[total < 2 ? 0 : 63 - __builtin_clzll(total)];
  CallRecord record = {};
  record.start = start;
  record.end = start + total;
  record.total = total;
  record.self = self;
  record.number = number;
  record.parent = parent;
  record.function = function;
  record.depth = parent != 0;
  record.ended_by = static_cast<uint32_t>(ended_by);
  thread->ring->push(record);
}

}  // namespace classaccess
