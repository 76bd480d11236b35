// A fabricated VM whose heap is closed and trapped for real: the whole signal side over
// fake Klasses, objects and JavaThreads. One a process, never taken down.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/counters.h"
#include "agent/fault/access_path.h"
#include "agent/fault/fault_handler.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/protection_key.h"
#include "agent/protect/twin_view.h"
#include "tests/unit/hotspot/fake_vm.h"

namespace classaccess::test {

// What one traced stretch of code left behind.
struct Trace {
  std::vector<AccessRecord> records;
  ThreadCounters counters;  // the difference
};

class World {
 public:
  static constexpr uint64_t kArmedBytes = 8 << 20;
  static constexpr uint64_t kOpenBytes = 1 << 20;  // behind the armed part: committed, not closed

  static World& get();
  // Why the world cannot be had on this machine; "" if it can.
  static const char* unsupported();

  uint64_t armed_end() const { return vm.layout.heap_low + kArmedBytes; }
  char* twin(uint64_t heap) const { return g_twin.at(heap); }

  // Objects with a marked start, their body filled with a pattern.
  uint64_t make_object(uint64_t klass, uint64_t bytes);
  uint64_t make_array(uint64_t klass, int32_t length, uint64_t element_bytes);
  // At an address of the caller's choice; the length not yet marked.
  void put_array(uint64_t at, uint64_t klass, int32_t length);
  void fill(uint64_t from, uint64_t to) const;
  // Memory without objects.
  uint64_t take_heap(uint64_t bytes, uint64_t alignment = 8);

  ClassInfo* class_of(uint64_t klass) { return classes.find_or_add(klass); }

  // This thread as a JavaThread; returns its fake JavaThread.
  uint64_t add_this_thread();
  void set_tlab(uint64_t java_thread, uint64_t start, uint64_t top);
  // The other way round, with its state retired and recycled.
  void remove_this_thread();

  // Everything in the rings, in order of threads.
  std::vector<AccessRecord> drain();

  // Runs f() with the heap closed for this thread, which becomes a JavaThread if need be.
  template <typename F>
  Trace trace(F&& f) {
    if (FaultHandler::this_thread() == nullptr) add_this_thread();
    ThreadState* thread = FaultHandler::this_thread();
    Trace trace;
    drain();
    const ThreadCounters before = thread->counters;
    g_key.deny_here();
    f();
    g_key.allow_here();
    trace.counters = difference(before, thread->counters);
    trace.records = drain();
    return trace;
  }

  // What was SIGSEGV's, SIGBUS's and SIGTRAP's action before ours; aborts if null.
  static std::atomic<void (*)(int, siginfo_t*, ucontext_t*)> previous;

  FakeVm vm;
  ClassPatterns patterns;
  ClassTable classes;
  MethodTable methods;
  CodeLookup code;
  SiteTable sites;
  ObjectStarts starts;
  Resolver resolver;
  ThreadPool threads;
  InstructionCache instructions;
  AccessPath access;

  uint64_t box_klass = 0;     // acme/Box, kBoxBytes
  uint64_t hidden_klass = 0;  // acme/Hidden, not selected
  uint64_t int_array = 0, byte_array = 0;
  static constexpr uint64_t kBoxBytes = 1024;

 private:
  World(uint64_t low, uint64_t high);
  static uint64_t os_thread_of(uint64_t java_thread);
  uint64_t java_thread_of(int32_t tid) const;
  static ThreadCounters difference(const ThreadCounters& before, const ThreadCounters& after);

  std::mutex mutex_;
  uint64_t list_ = 0, thread_slots_ = 0;
  uint32_t thread_count_ = 0;
};

#define NEEDS_WORLD() \
  if (::classaccess::test::World::unsupported()[0] != '\0') GTEST_SKIP() << ::classaccess::test::World::unsupported()

// Records of every thread, drained by a thread of their own until stopped.
class Drain {
 public:
  explicit Drain(World& world, unsigned pause_us = 200)
      : thread_([this, &world, pause_us] {
          sigset_t all;  // of the process's signals it gets none
          sigfillset(&all);
          pthread_sigmask(SIG_BLOCK, &all, nullptr);
          ready_ = true;
          for (bool last = false; !last;) {
            last = stop_.load();
            for (AccessRecord& record : world.drain()) records_.push_back(record);
            if (!last) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
          }
        }) {
    while (!ready_) std::this_thread::yield();
  }
  std::vector<AccessRecord>& stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return records_;
  }
  ~Drain() { stop(); }

 private:
  std::atomic<bool> stop_{false}, ready_{false};
  std::vector<AccessRecord> records_;
  std::thread thread_;
};

}  // namespace classaccess::test
