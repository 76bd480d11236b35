// mode=pages over the fabricated VM of tests/fault: a closed range, what threads touch there, and the records.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "agent/pages/open_pages.h"
#include "agent/pages/page_trap.h"
#include "tests/fault/world.h"

namespace classaccess::test {

struct Counts {
  std::map<uint64_t, uint64_t> counts;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> transitions;
  uint64_t records = 0;
};

inline Counts counts_of(const std::vector<AccessRecord>& records) {
  Counts all;
  for (const AccessRecord& record : records) {
    EXPECT_EQ(record.kind, RecordKind::kPage);
    ++all.records;
    ++all.counts[record.address];
    if (record.object != kNoPage) ++all.transitions[{record.object, record.address}];
  }
  return all;
}

class TrappedPages : public ::testing::Test {
 protected:
  void SetUp() override {
    NEEDS_WORLD();
    World& world = World::get();
    enable_page_trap(&world.access);
    low_ = world.vm.layout.heap_low;
  }

  // All pages closed, empty windows; a thread gets a key as soon as it touches a page.
  void start(uint32_t window, uint64_t page_bytes = 4096, uint32_t traps_without_key = 0) {
    ASSERT_EQ(g_gate.close_range(low_, World::get().armed_end()), 0);
    OpenPages::Choice choice;
    choice.page_bytes = page_bytes;
    choice.window = window;
    choice.keys = keys_;
    choice.traps_without_key = traps_without_key;
    ASSERT_TRUE(g_open_pages.create(low_, g_armed.high(), choice));
  }

  volatile int* at(uint64_t page, uint64_t offset = 0) const {
    return reinterpret_cast<volatile int*>(low_ + page * g_open_pages.page_bytes() + offset);
  }

  // Runs f() as a recorded thread with the heap closed; its records.
  template <typename F>
  std::vector<AccessRecord> recorded(F&& f, ThreadCounters* counters = nullptr) {
    World& world = World::get();
    if (FaultHandler::this_thread() == nullptr) world.add_this_thread();
    world.drain();
    Drain drain(world);
    Trace trace = world.trace(f);
    std::vector<AccessRecord> records = drain.stop();
    records.insert(records.end(), trace.records.begin(), trace.records.end());
    if (counters != nullptr) *counters = trace.counters;
    return records;
  }

  std::vector<std::pair<uint64_t, Op>> sequence(const std::vector<AccessRecord>& records) const {
    std::vector<std::pair<uint64_t, Op>> all;
    for (const AccessRecord& record : records) all.push_back({record.address, record.op});
    return all;
  }

  uint64_t low_ = 0;
  uint32_t keys_ = 0;  // page keys that start() uses
};

}  // namespace classaccess::test
