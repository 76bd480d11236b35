#include "tests/fault/world.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/fault/java_thread.h"

namespace classaccess::test {

std::atomic<void (*)(int, siginfo_t*, ucontext_t*)> World::previous{nullptr};

namespace {

// The fake JavaThread, OSThread and ThreadsList.
constexpr uint32_t kOsThread = 8, kTlab = 64, kTlabStart = 0, kTlabTop = 8, kTlabEnd = 16, kThreadId = 16;
constexpr uint32_t kListLength = 0, kListThreads = 8;
constexpr uint32_t kMaxThreads = 64;
constexpr int32_t kNoThread = -1;

const char* g_unsupported = "";

void on_previous(int signal, siginfo_t* info, void* context) {
  auto* action = World::previous.load();
  if (action == nullptr) {
    static const char kText[] = "a signal reached the previous handler that no test expects\n";
    (void)!write(2, kText, sizeof(kText) - 1);
    abort();
  }
  action(signal, info, static_cast<ucontext_t*>(context));
}

bool map_heap() {
  const uint64_t low = 0x600000000, high = low + (16 << 20);
  g_unsupported = g_gate.choose(HeapGate::BackEnd::kPkey);
  if (g_unsupported[0] != '\0') return false;
  void* got = mmap(reinterpret_cast<void*>(low), high - low, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != reinterpret_cast<void*>(low) || !g_armed.create(low, high) || !g_committed.create(low, high) ||
      !g_twin.create(low, high) || g_twin.commit(low, World::kArmedBytes + World::kOpenBytes) != 0 ||
      g_gate.close_range(low, low + World::kArmedBytes) != 0) {
    g_unsupported = "the fake heap could not be mapped";
    return false;
  }
  struct sigaction action {};
  action.sa_sigaction = on_previous;
  // Our handler is on an alternate stack if this one is: stack_test.cc measures it there.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGTRAP}) sigaction(signal, &action, nullptr);
  return true;
}

World* g_world;

}  // namespace

const char* World::unsupported() {
  static const bool tried = [] {
    if (map_heap()) g_world = new World(g_armed.low(), g_armed.high());
    return true;
  }();
  (void)tried;
  return g_unsupported;
}

World& World::get() {
  unsupported();
  if (g_world == nullptr) abort();
  return *g_world;
}

World::World(uint64_t low, uint64_t high) : vm(low, high, g_twin.distance()) {
  VmLayout& l = vm.layout;
  l.java_thread_osthread = kOsThread;
  l.osthread_thread_id = kThreadId;
  l.java_thread_tlab = kTlab;
  l.tlab_start = kTlabStart;
  l.tlab_top = kTlabTop;
  l.tlab_end = kTlabEnd;
  l.threads_list_length = kListLength;
  l.threads_list_threads = kListThreads;
  list_ = vm.take(16);
  thread_slots_ = vm.take(kMaxThreads * 8);
  vm.put(list_ + kListThreads, thread_slots_);
  uint64_t slot = vm.take(8);
  vm.put(slot, list_);
  l.java_thread_list_slot = slot;

  bool fine = patterns.add("!acme.Hidden").empty();
  fine = fine && classes.create(&patterns, &l) && methods.create(&classes, &l) && code.create(&methods, &l) &&
         sites.create() && starts.create(low, high) && threads.create() && instructions.create();
  resolver.create(&classes, &starts, &l);
  access.layout = &l;
  access.classes = &classes;
  access.code = &code;
  access.sites = &sites;
  access.resolver = &resolver;
  access.threads = &threads;
  access.instructions = &instructions;
  if (!fine) {
    g_unsupported = "the tables could not be made";
    return;
  }
  const char* problem = FaultHandler::start(&access);
  if (problem[0] != '\0') {
    g_unsupported = problem;
    return;
  }
  uint64_t object = vm.make_klass("java/lang/Object", 16, 0);
  box_klass = vm.make_klass("acme/Box", kBoxBytes, object);
  hidden_klass = vm.make_klass("acme/Hidden", 64, object);
  int_array = vm.make_klass("[I", kIntArray, object);
  byte_array = vm.make_klass("[B", static_cast<int32_t>(0xc0100800), object);
  g_recording.store(RecordingState::kOn);
}

void World::fill(uint64_t from, uint64_t to) const {
  for (uint64_t at = from; at < to; ++at) *twin(at) = static_cast<char>(at * 37 + (at >> 8) * 11 + 1);
}

uint64_t World::take_heap(uint64_t bytes, uint64_t alignment) {
  std::lock_guard lock(mutex_);
  uint64_t at = vm.take_heap(bytes + alignment);
  return (at + alignment - 1) & ~(alignment - 1);
}

uint64_t World::make_object(uint64_t klass, uint64_t bytes) {
  uint64_t object = take_heap(bytes, 64);
  vm.put_header(object, klass);
  fill(object + 12, object + bytes);
  starts.set(object);
  return object;
}

void World::put_array(uint64_t at, uint64_t klass, int32_t length) {
  vm.put_header(at, klass);
  vm.put_heap(at, 12, length);
}

uint64_t World::make_array(uint64_t klass, int32_t length, uint64_t element_bytes) {
  uint64_t bytes = 16 + static_cast<uint64_t>(length) * element_bytes;
  uint64_t object = take_heap(bytes, 64);
  put_array(object, klass, length);
  fill(object + 16, object + bytes);
  starts.set(object);
  return object;
}

uint64_t World::os_thread_of(uint64_t java_thread) {
  uint64_t os_thread;
  memcpy(&os_thread, reinterpret_cast<void*>(java_thread + kOsThread), 8);
  return os_thread;
}

// The fake JavaThread whose kernel thread is `tid`, 0 if none.
uint64_t World::java_thread_of(int32_t tid) const {
  for (uint32_t i = 0; i < thread_count_; ++i) {
    uint64_t thread;
    int32_t other;
    memcpy(&thread, reinterpret_cast<void*>(thread_slots_ + 8 * i), 8);
    memcpy(&other, reinterpret_cast<void*>(os_thread_of(thread) + kThreadId), 4);
    if (other == tid) return thread;
  }
  return 0;
}

uint64_t World::add_this_thread() {
  std::lock_guard lock(mutex_);
  uint64_t thread = java_thread_of(current_tid());
  if (thread == 0) thread = java_thread_of(kNoThread);
  if (thread == 0) {
    if (thread_count_ == kMaxThreads) abort();
    thread = vm.take(256);
    vm.put(thread + kOsThread, vm.take(64));
    vm.put(thread_slots_ + 8 * thread_count_, thread);
    vm.put(os_thread_of(thread) + kThreadId, current_tid());
    vm.put(list_ + kListLength, ++thread_count_);
  } else {
    vm.put(os_thread_of(thread) + kThreadId, current_tid());
  }
  FaultHandler::adopt_this_thread();
  return thread;
}

void World::set_tlab(uint64_t java_thread, uint64_t start, uint64_t top) {
  vm.put(java_thread + kTlab + kTlabStart, start);
  vm.put(java_thread + kTlab + kTlabTop, top);
  vm.put(java_thread + kTlab + kTlabEnd, top);
}

void World::remove_this_thread() {
  std::lock_guard lock(mutex_);
  if (uint64_t thread = java_thread_of(current_tid())) vm.put(os_thread_of(thread) + kThreadId, kNoThread);
  FaultHandler::retire_this_thread();
}

std::vector<AccessRecord> World::drain() {
  std::lock_guard lock(mutex_);
  std::vector<AccessRecord> all;
  threads.for_each(
      [&](ThreadState& state) { state.ring.drain([&](const AccessRecord& record) { all.push_back(record); }); });
  return all;
}

ThreadCounters World::difference(const ThreadCounters& before, const ThreadCounters& after) {
  ThreadCounters d = after;
  d.traps -= before.traps;
  d.emulated -= before.emulated;
  d.displaced -= before.displaced;
  d.stepped -= before.stepped;
  d.chained -= before.chained;
  d.recorded -= before.recorded;
  d.filtered -= before.filtered;
  d.unresolved -= before.unresolved;
  d.waits -= before.waits;
  d.dropped -= before.dropped;
  return d;
}

}  // namespace classaccess::test
