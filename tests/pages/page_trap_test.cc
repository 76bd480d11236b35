// mode=pages for real: a closed range, traps, the kernel's protection, against the simulation.
#include "agent/pages/page_trap.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "agent/pages/open_pages.h"
#include "tests/fault/world.h"
#include "tests/pages/simulation.h"
#include "tests/pages/trapped_pages.h"

namespace classaccess {
namespace {

using test::Counts;
using test::counts_of;
using test::Simulation;
using test::TrappedPages;
using test::World;

constexpr uint64_t kPages = 1000;

// With page keys, where each thread has a window of its own, and without them: each page opened for the process.
class PageTrap : public TrappedPages, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    TrappedPages::SetUp();
    if (IsSkipped() || !GetParam()) return;
    ASSERT_GT(g_key.alloc_page_keys(), 8u);
    keys_ = g_key.page_keys();
  }
};

TEST_P(PageTrap, WalksOfOneThreadAreTheSimulation) {
  for (uint32_t window : {1u, 2u, 4u}) {
    for (const char* order : test::kOrders) {
      SCOPED_TRACE(std::string(order) + " window " + std::to_string(window));
      start(window);
      std::vector<uint64_t> pages = test::walk(order, kPages, 5000);
      Simulation simulation(window);
      for (uint64_t page : pages) simulation.touch(page);
      ThreadCounters counters;
      Counts counts = counts_of(recorded(
          [&] {
            for (uint64_t page : pages) (void)*at(page, page * 8 % 4096);
          },
          &counters));
      EXPECT_EQ(counts.counts, simulation.counts);
      EXPECT_EQ(counts.transitions, simulation.transitions);
      EXPECT_EQ(counters.traps, simulation.counted()) << "a touch of an open page costs no trap";
    }
  }
}

TEST_P(PageTrap, LargePagesAreTheSimulationToo) {
  for (uint64_t page_bytes : {65536ull, 2097152ull}) {
    start(2, page_bytes);
    std::vector<uint64_t> pages = test::walk("random", World::kArmedBytes / page_bytes, 500);
    Simulation simulation(2);
    for (uint64_t page : pages) simulation.touch(page);
    ThreadCounters counters;
    Counts counts = counts_of(recorded(
        [&] {
          for (uint64_t page : pages) *at(page, page * 4096 % page_bytes) = 1;
        },
        &counters));
    EXPECT_EQ(counts.counts, simulation.counts);
    EXPECT_EQ(counts.transitions, simulation.transitions);
    EXPECT_EQ(counters.traps, simulation.counted());
  }
}

// The threads take turns, so that the order of all touches is known.
TEST_P(PageTrap, FourThreadsInTurnAreTheSimulation) {
  if (GetParam()) GTEST_SKIP() << "own_windows_test.cc";
  constexpr int kThreads = 4, kTouches = 2000;
  World& world = World::get();
  for (uint32_t window : {1u, 2u, 4u}) {
    start(window);
    std::vector<uint64_t> pages = test::walk("random", 40, kTouches);
    Simulation simulation(window);
    for (uint64_t page : pages) simulation.touch(page);
    world.drain();
    std::atomic<int> turn{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        world.add_this_thread();
        g_key.deny_here();
        for (int i = t; i < kTouches; i += kThreads) {
          while (turn.load() != i) std::this_thread::yield();
          (void)*at(pages[i]);
          turn.store(i + 1);
        }
        g_key.allow_here();
        world.remove_this_thread();
      });
    }
    for (std::thread& thread : threads) thread.join();
    Counts counts = counts_of(world.drain());
    EXPECT_EQ(counts.counts, simulation.counts);
    EXPECT_EQ(counts.transitions, simulation.transitions);
  }
}

// Each thread goes round pages of its own, more than the window has: whatever the others do, each touch finds its
// page closed.
TEST_P(PageTrap, FourThreadsAtOnceLoseNothing) {
  constexpr uint64_t kThreads = 4, kOwn = 25, kRounds = 40;
  World& world = World::get();
  for (uint32_t window : {1u, 2u, 4u}) {
    start(window);
    world.drain();
    test::Drain drain(world);
    std::atomic<uint64_t> ready{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        world.add_this_thread();
        ++ready;
        while (ready.load() < kThreads) std::this_thread::yield();
        g_key.deny_here();
        for (uint64_t i = 0; i < kOwn * kRounds; ++i) *at(t * kOwn + i % kOwn) = 1;
        g_key.allow_here();
      });
    }
    for (std::thread& thread : threads) thread.join();
    Counts counts = counts_of(drain.stop());
    EXPECT_EQ(counts.records, kThreads * kOwn * kRounds);
    std::map<uint64_t, uint64_t> in;
    for (const auto& [pair, times] : counts.transitions) {
      EXPECT_NE(pair.first, pair.second);
      in[pair.second] += times;
    }
    uint64_t first = 0;  // a window's first touch has no page before it
    for (const auto& [page, times] : counts.counts) {
      EXPECT_EQ(times, kRounds) << page;
      first += times - in[page];
    }
    EXPECT_EQ(first, GetParam() ? kThreads : 1);
  }
}

// The kernel tells key 0 of a fault whose page another thread has opened before it looks.
TEST_P(PageTrap, AFaultOnAPageThatIsOpenedMeanwhileIsOurs) {
  World& world = World::get();
  start(1);
  test::Drain drain(world);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      world.add_this_thread();
      g_key.deny_here();
      for (uint64_t i = 0; i < 5000; ++i) *at((i + t) % 2, 64 * t) = 1;
      g_key.allow_here();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<AccessRecord>& records = drain.stop();
  EXPECT_GT(records.size(), 1000u);
  for (const AccessRecord& record : records) {
    if (record.object == kNoPage) continue;
    ASSERT_NE(record.object, record.address) << "with a window of one";
  }
}

TEST_P(PageTrap, AMoveBetweenTwoPagesGoesOnWithAWindowOfOne) {
  start(1);
  auto source = low_ + 10 * 4096 + 100, destination = low_ + 20 * 4096 + 4;
  World::get().fill(source, source + 64);
  std::vector<AccessRecord> records = recorded([&] {
    uint64_t rsi = source, rdi = destination;
    for (int i = 0; i < 3; ++i) asm volatile("movsq" : "+S"(rsi), "+D"(rdi) : : "memory");
  });
  using Touches = std::vector<std::pair<uint64_t, Op>>;
  EXPECT_EQ(
      sequence(records),
      (Touches{
          {10, Op::kLoad}, {20, Op::kStore}, {10, Op::kLoad}, {20, Op::kStore}, {10, Op::kLoad}, {20, Op::kStore}}));
  EXPECT_EQ(memcmp(g_twin.at(source), g_twin.at(destination), 24), 0);
}

TEST_P(PageTrap, RepeatedMoveTakesEachPageItReaches) {
  start(1);
  uint64_t source = low_ + 30 * 4096, destination = low_ + 50 * 4096 + 2048;
  World::get().fill(source, source + 8192);
  std::vector<AccessRecord> records = recorded([&] {
    uint64_t rsi = source, rdi = destination, rcx = 8192;
    asm volatile("rep movsb" : "+S"(rsi), "+D"(rdi), "+c"(rcx) : : "memory");
  });
  using Touches = std::vector<std::pair<uint64_t, Op>>;
  EXPECT_EQ(sequence(records),
            (Touches{{30, Op::kLoad}, {50, Op::kStore}, {51, Op::kStore}, {31, Op::kLoad}, {52, Op::kStore}}));
  EXPECT_EQ(memcmp(g_twin.at(source), g_twin.at(destination), 8192), 0);
}

TEST_P(PageTrap, VectorsAndUpdatesOverAPagesEnd) {
  start(1);
  auto address = low_ + 61 * 4096 - 8;
  std::vector<AccessRecord> records = recorded([&] {
    asm volatile("movups %%xmm0, (%0)" : : "r"(address) : "memory");
    asm volatile("incq %0" : "+m"(*reinterpret_cast<uint64_t*>(address + 4)) : : "memory");
  });
  using Touches = std::vector<std::pair<uint64_t, Op>>;
  EXPECT_EQ(sequence(records), (Touches{{60, Op::kStore}, {61, Op::kStore}, {60, Op::kRmw}, {61, Op::kRmw}}));
}

TEST_P(PageTrap, OpenPagesCostNoTrap) {
  start(4);
  ThreadCounters counters;
  recorded(
      [&] {
        for (int i = 0; i < 1000000; ++i) *at(static_cast<uint64_t>(i % 4), 8) = i;
      },
      &counters);
  EXPECT_EQ(counters.traps, 4u);
}

TEST_P(PageTrap, RangesGivenBackLeaveTheWindow) {
  start(4);
  uint64_t low = low_ + 64 * 4096, high = low + 3 * 4096;
  std::vector<AccessRecord> records = recorded([&] {
    for (uint64_t page : {63, 64, 65, 66}) (void)*at(page);
    g_armed.clear(low, high);
    g_open_pages.forget(low, high);
    g_gate.close_range(low, high);  // committed anew
    for (uint64_t page : {63, 64, 65, 66, 63}) (void)*at(page);
  });
  Simulation simulation(4);
  for (uint64_t page : {63, 64, 65, 66}) simulation.touch(page);
  simulation.forget(64, 67);
  for (uint64_t page : {63, 64, 65, 66, 63}) simulation.touch(page);
  EXPECT_EQ(counts_of(records).counts, simulation.counts);
}

TEST_P(PageTrap, APageClosedBehindOurBackIsOpenedAgainAndNotCounted) {
  start(2);
  uint64_t reopens = g_counters.page_reopens;
  ThreadCounters counters;
  std::vector<AccessRecord> records = recorded(
      [&] {
        (void)*at(70);
        g_gate.close_range(low_ + 70 * 4096, low_ + 71 * 4096);
        for (int i = 0; i < 100; ++i) (void)*at(70);
      },
      &counters);
  EXPECT_EQ(records.size(), 1u);
  EXPECT_EQ(counters.traps, 2u);
  EXPECT_EQ(g_counters.page_reopens, reopens + 1);
}

// Before it makes a thread, which would inherit them: a page that it had open costs one more trap and no count.
TEST_P(PageTrap, RightsAreGivenUpAndComeBack) {
  start(2);
  ThreadCounters counters;
  std::vector<AccessRecord> records = recorded(
      [&] {
        for (int round = 0; round < 3; ++round) {
          for (uint64_t page : {80, 81}) (void)*at(page);
        }
        drop_page_rights();
        EXPECT_EQ(g_key.denied_here(), true);
        for (int i = 0; i < 100; ++i) {
          for (uint64_t page : {80, 81}) (void)*at(page);
        }
      },
      &counters);
  EXPECT_EQ(records.size(), 2u);
  EXPECT_LE(counters.traps, 3u);
}

TEST_P(PageTrap, APageThatTwoThreadsUseClosesForBoth) {
  if (GetParam()) GTEST_SKIP() << "own_windows_test.cc";
  World& world = World::get();
  start(1);
  recorded([&] {
    for (int i = 0; i < 40; ++i) (void)*at(static_cast<uint64_t>(90 + i % 3));
    (void)*at(90);
  });
  world.drain();
  std::atomic<int> step{0};
  std::thread other([&] {
    world.add_this_thread();
    g_key.deny_here();
    (void)*at(90);  // in the window: not counted
    step = 1;
    while (step.load() != 2) std::this_thread::yield();
    (void)*at(90);  // counted: the first thread has closed it
    g_key.allow_here();
    drop_page_rights();
    world.remove_this_thread();
  });
  std::vector<AccessRecord> mine = recorded([&] {
    while (step.load() != 1) std::this_thread::yield();
    (void)*at(91);
    step = 2;
  });
  other.join();
  std::vector<AccessRecord> rest = world.drain();
  mine.insert(mine.end(), rest.begin(), rest.end());
  Counts counts = counts_of(mine);
  EXPECT_EQ(counts.counts, (std::map<uint64_t, uint64_t>{{90, 1}, {91, 1}}));
  EXPECT_EQ(counts.transitions, (std::map<std::pair<uint64_t, uint64_t>, uint64_t>{{{90, 91}, 1}, {{91, 90}, 1}}));
}

// max_map_count: what cannot be opened is performed on the twin, and counted as the model says.
TEST_P(PageTrap, WithoutAMappingLeftCountsStayExact) {
  start(4);
  uint64_t refused = g_counters.page_opens_refused;
  std::vector<uint64_t> pages = test::walk("stride", 300, 2000);
  Simulation simulation(4);
  for (uint64_t page : pages) simulation.touch(2 * page);
  // Reserved whole, then each second page another protection: one mapping a page.
  constexpr uint64_t kMost = 4000000;
  auto* eaten =
      static_cast<char*>(mmap(nullptr, kMost * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(eaten, MAP_FAILED);
  uint64_t used = 0;
  World& world = World::get();
  if (FaultHandler::this_thread() == nullptr) world.add_this_thread();
  world.drain();
  g_key.deny_here();
  while (used < kMost && mprotect(eaten + used * 4096, 4096, PROT_READ) == 0) used += 2;
  for (uint64_t page : pages) (void)*at(2 * page);
  g_key.allow_here();
  munmap(eaten, kMost * 4096);
  if (used >= kMost) GTEST_SKIP() << "max_map_count is too large to be used up";
  Counts counts = counts_of(world.drain());
  EXPECT_EQ(counts.counts, simulation.counts);
  EXPECT_EQ(counts.transitions, simulation.transitions);
  EXPECT_GT(g_counters.page_opens_refused, refused);
}

INSTANTIATE_TEST_SUITE_P(Keys, PageTrap, ::testing::Values(true), [](const auto&) { return "PageKeys"; });
INSTANTIATE_TEST_SUITE_P(Process, PageTrap, ::testing::Values(false), [](const auto&) { return "OneKey"; });

}  // namespace
}  // namespace classaccess
