#include "agent/calls/call_sink.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/base/arena.h"
#include "agent/base/raw_log.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"
#include "agent/base/wake.h"
#include "agent/calls/call_core.h"
#include "agent/fault/own_thread.h"

namespace classaccess {

AppendTable<CallFunction> g_call_functions;
AppendTable<CallContext> g_call_contexts;
std::atomic<uint32_t> g_first_call_function{1};
CallCounters g_call_counters;
std::atomic<bool> g_call_rows{false}, g_call_contexts_wanted{false}, g_calls_on{false};
CallThread* g_call_threads = nullptr;
std::atomic<uint32_t> g_call_threads_end{0};
CallCost g_native_call_cost, g_java_call_cost;
__thread CallThread* t_call_thread __attribute__((tls_model("initial-exec")));

namespace {

// Of the process: this thread's own, behind whatever set_call_thread has put in front.
__thread CallThread* t_own_call_thread __attribute__((tls_model("initial-exec")));
__thread bool t_claiming __attribute__((tls_model("initial-exec")));

constexpr size_t kNameBytes = 64 << 20;
constexpr size_t kStatBytes = size_t{1} << 30;  // more would push libraries loaded later out of reach of stubs
constexpr uint32_t kContextSlots = 1u << 21;
constexpr uint32_t kStatBlocks = kMaxCallFunctions / CallThread::kStatsInBlock;

Arena g_names, g_stats;
// (outer, function) -> inner, all in one word: 20, 20 and 20 bits, and a bit that says it is used.
constexpr int kFunctionBits = 20, kInnerShift = 40;
std::atomic<uint64_t>* g_inner = nullptr;
pthread_key_t g_end_key;
bool g_started = false;

static_assert(kMaxCallContexts <= 1u << 20 && kMaxCallFunctions <= 1u << 20);

uint64_t inner_key(uint32_t outer, uint32_t function) {
  return uint64_t{1} << 63 | static_cast<uint64_t>(outer) << kFunctionBits | function;
}

bool is_under_way(uint32_t context, uint32_t function) {
  for (; context != 0; context = g_call_contexts.row(context).outer) {
    if (g_call_contexts.row(context).function == function) return true;
  }
  return false;
}

// As reserve_array, but at a thread's first call, which may be anywhere: no lock, no library.
template <typename T>
T* map_array(size_t count) {
  long at = raw_syscall(SYS_mmap, 0, static_cast<long>(count * sizeof(T)), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at > 0 ? reinterpret_cast<T*>(at) : nullptr;
}

// The current thread's number in the recording, if it has one by now; else the writer finds it.
void name_after_state(CallThread* thread) {
  uint32_t none = 0;
  if (t_state != nullptr)
    thread->thread_id.compare_exchange_strong(none, t_state->thread_id, std::memory_order_release);
}

void thread_ends(void* thread) {
  end_call_thread(static_cast<CallThread*>(thread));
  t_own_call_thread = nullptr;
  t_call_thread = nullptr;
}

}  // namespace

uint32_t add_call_function(FunctionKind kind, Loaded loaded, const char* name, const char* library, uint64_t address,
                           const char* refused) {
  const char* copy = g_names.copy(name, strlen(name));
  uint32_t id = copy[0] == name[0] ? g_call_functions.claim() : 0;
  if (id == 0) {
    if (g_call_counters.functions_full.fetch_add(1, std::memory_order_relaxed) == 0) {
      raw_log(LogLevel::kWarn, "calls: too many functions for one process (all recordings together): %s is not timed",
              name);
    }
    return 0;
  }
  CallFunction& row = g_call_functions.row(id);
  row.kind = kind;
  row.loaded = loaded;
  row.name = copy;
  row.library = g_names.copy(library, strlen(library));
  row.address = address;
  if (refused != nullptr) row.refused.store(g_names.copy(refused, strlen(refused)), std::memory_order_relaxed);
  row.ready.store(true, std::memory_order_release);
  return id;
}

void refuse_call_function(uint32_t id, const char* why) {
  g_call_functions.row(id).refused.store(g_names.copy(why, strlen(why)), std::memory_order_release);
}

bool start_call_sink() {
  if (g_started) return true;
  g_call_threads = reserve_array<CallThread>(kMaxCallThreads, Keep::kProcess);
  g_inner = reserve_array<std::atomic<uint64_t>>(kContextSlots, Keep::kProcess);
  bool made = g_call_threads != nullptr && g_inner != nullptr &&
              g_call_functions.create(kMaxCallFunctions, Keep::kProcess) &&
              g_call_contexts.create(kMaxCallContexts, Keep::kProcess) && g_names.create(kNameBytes, Keep::kProcess) &&
              g_stats.create(kStatBytes, Keep::kProcess) && pthread_key_create(&g_end_key, thread_ends) == 0;
  if (!made) return false;
  // A child that fork makes is not recorded.
  pthread_atfork(nullptr, nullptr, [] { g_calls_on.store(false, std::memory_order_relaxed); });
  start_call_clock();
  g_started = true;
  return true;
}

uint32_t inner_context(uint32_t outer, uint32_t function) {
  const uint64_t key = inner_key(outer, function);
  uint64_t at = key * 0x9e3779b97f4a7c15ull >> 43;
  for (int i = 0; i < 64; ++i, at = (at + 1) % kContextSlots) {
    uint64_t word = g_inner[at].load(std::memory_order_acquire);
    if (word == 0) {
      uint32_t inner = outer;
      if (!is_under_way(outer, function)) {
        inner = g_call_contexts.claim();
        if (inner == 0) break;
        CallContext& row = g_call_contexts.row(inner);
        row.outer = outer;
        row.function = function;
        row.ready.store(true, std::memory_order_release);
      }
      uint64_t made = key | static_cast<uint64_t>(inner) << kInnerShift;
      // If another thread was faster our row is one too many of the same meaning.
      if (g_inner[at].compare_exchange_strong(word, made, std::memory_order_acq_rel)) return inner;
    }
    if ((word & ~(uint64_t{0xfffff} << kInnerShift)) == key)
      return static_cast<uint32_t>(word >> kInnerShift & 0xfffff);
  }
  g_call_counters.contexts_full.fetch_add(1, std::memory_order_relaxed);
  return outer;
}

CallStat* make_call_stat(CallThread* thread, uint32_t function) {
  constexpr uint32_t kIn = CallThread::kStatsInBlock;
  auto* block = static_cast<CallStat*>(g_stats.take(sizeof(CallStat) * kIn));
  if (block == nullptr) {
    g_call_counters.memory_full.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  for (uint32_t i = 0; i < kIn; ++i) block[i].function = function / kIn * kIn + i;
  thread->stats[function / kIn].store(block, std::memory_order_release);
  return &block[function % kIn];
}

void push_call_row(CallThread* thread, const CallRecord& record) {
  // Of 100 us, in which the writer has taken nothing. A native function may hold a lock that the writer needs; who is
  // in a Java method holds none, so that only a slow disk makes it wait.
  constexpr int kNativeTries = 2000, kJavaTries = 600000;
  const int tries = record.caller != 0 ? kNativeTries : kJavaTries;
  uint64_t waiting = thread->ring->pending();
  for (int i = 0; !thread->ring->push(record); ++i) {
    if (uint64_t now = thread->ring->pending(); now != waiting) {
      waiting = now;
      i = 0;
    }
    if (i == tries || thread->row_lost || !g_call_rows.load(std::memory_order_relaxed)) {
      thread->row_lost = true;
      g_call_counters.rows_dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    wake_writer();
    raw_sleep(100000);
  }
  thread->row_lost = false;
}

CallThread* claim_call_thread(int32_t tid, uint32_t virtual_id) {
  // Where the last one was found: thousands of virtual threads may hold theirs.
  static std::atomic<uint32_t> last{0};
  const uint32_t start = last.load(std::memory_order_relaxed);
  for (uint32_t tried = 0; tried < kMaxCallThreads; ++tried) {
    const uint32_t i = (start + tried) % kMaxCallThreads;
    CallThread& thread = g_call_threads[i];
    uint32_t free = 0;
    constexpr uint32_t kSettingUp = 3;
    if (thread.phase.load(std::memory_order_relaxed) != 0 ||
        !thread.phase.compare_exchange_strong(free, kSettingUp, std::memory_order_acquire)) {
      continue;
    }
    if (thread.frames == nullptr) {
      thread.frames = map_array<CallFrame>(CallThread::kMaxFrames);
      thread.stats = map_array<std::atomic<CallStat*>>(kStatBlocks);
      thread.ring = map_array<CallRing>(1);
      if (thread.frames == nullptr || thread.stats == nullptr || thread.ring == nullptr) {
        thread.phase.store(0, std::memory_order_release);
        break;
      }
    }
    thread.thread_id.store(0, std::memory_order_relaxed);
    thread.tid = tid;
    thread.virtual_id = virtual_id;
    thread.context = thread.depth = 0;
    thread.row_lost = false;
    thread.calls = thread.busy = 0;
    last.store(i < 64 ? 0 : i, std::memory_order_relaxed);
    uint32_t end = g_call_threads_end.load(std::memory_order_relaxed);
    while (end < i + 1 && !g_call_threads_end.compare_exchange_weak(end, i + 1, std::memory_order_release)) {
    }
    thread.phase.store(1, std::memory_order_release);
    return &thread;
  }
  g_call_counters.threads_full.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

CallThread* call_thread() {
  if (t_call_thread != nullptr) return t_call_thread;
  if (t_own_call_thread == nullptr) {
    if (t_claiming) return nullptr;  // pthread_setspecific may be timed too
    t_claiming = true;
    t_own_call_thread = claim_call_thread(static_cast<int32_t>(raw_syscall(SYS_gettid)), 0);
    // Of the first 32 keys: no memory is allocated.
    if (t_own_call_thread != nullptr && g_end_key < 32) pthread_setspecific(g_end_key, t_own_call_thread);
    t_claiming = false;
    if (t_own_call_thread == nullptr) return nullptr;
    name_after_state(t_own_call_thread);
  }
  return t_call_thread = t_own_call_thread;
}

void set_call_thread(CallThread* thread) { t_call_thread = thread != nullptr ? thread : t_own_call_thread; }

void end_call_thread(CallThread* thread) {
  if (thread == t_own_call_thread) name_after_state(thread);
  uint64_t now = call_ticks();
  {
    CallBusy busy(thread, reinterpret_cast<uint64_t>(&now));
    while (thread->depth > 0) pop_call_frame(thread, now, EndedBy::kUnwound, g_native_call_cost);
  }
  thread->phase.store(2, std::memory_order_release);
}

namespace {

// The blocks stay taken: the arena gives nothing back.
void clear_stats(CallThread* thread) {
  const uint32_t used = g_call_functions.end() / CallThread::kStatsInBlock + 1;
  for (uint32_t i = 0; i < kStatBlocks && i < used; ++i) {
    CallStat* block = thread->stats[i].load(std::memory_order_relaxed);
    for (uint32_t j = 0; block != nullptr && j < CallThread::kStatsInBlock; ++j) {
      uint32_t function = block[j].function;
      block[j] = CallStat();
      block[j].function = function;
    }
  }
}

}  // namespace

void recycle_call_thread(CallThread* thread) {
  clear_stats(thread);
  thread->phase.store(0, std::memory_order_release);
}

void reset_call_sink() {
  g_first_call_function.store(g_call_functions.end(), std::memory_order_relaxed);
  for_each_call_thread([](CallThread& thread) {
    thread.ring->drain([](const CallRecord&) {});
    clear_stats(&thread);
    uint32_t ended = 2;
    thread.phase.compare_exchange_strong(ended, 0, std::memory_order_release);
  });
}

bool call_enter_java(uint32_t function, uint64_t stack) {
  if (!g_calls_on.load(std::memory_order_relaxed)) return false;
  CallThread* thread = call_thread();
  if (thread == nullptr) return false;
  if (thread->busy != 0) {
    g_call_counters.busy.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  CallBusy busy(thread, reinterpret_cast<uint64_t>(&thread));
  CallFrame* frame = push_call_frame(thread, function, 0, 0);
  if (frame == nullptr) return false;
  frame->stack = stack;
  frame->start = call_ticks();
  return true;
}

// The innermost Java frame of `function` below the top `depth`; 0: none, else its number plus one.
static uint32_t java_frame(const CallThread* thread, uint32_t function, uint32_t depth) {
  while (depth > 0 && (thread->frames[depth - 1].function != function || thread->frames[depth - 1].slot != 0)) --depth;
  return depth;
}

void call_leave_java(uint32_t function, EndedBy ended_by, uint64_t stack) {
  uint64_t end = call_ticks();
  CallThread* thread = t_call_thread;
  if (thread == nullptr || thread->busy != 0) return;
  uint32_t at = java_frame(thread, function, thread->depth);
  if (at == 0) return;
  // A call that has left without a word (its handler found no stack to call us): it lies deeper than we are, and so
  // does not the one round it.
  while (thread->frames[at - 1].stack < stack) {
    const uint32_t outer = java_frame(thread, function, at - 1);
    if (outer == 0 || thread->frames[outer - 1].stack > stack || thread->frames[outer - 1].stack == 0) break;
    at = outer;
  }
  CallBusy busy(thread, reinterpret_cast<uint64_t>(&end));
  while (thread->depth > at) {
    // Native calls inside that were left without a return; their slots are the stack's again.
    pop_call_frame(thread, end, EndedBy::kUnwound, g_native_call_cost);
  }
  pop_call_frame(thread, end, ended_by, g_java_call_cost);
}

}  // namespace classaccess
