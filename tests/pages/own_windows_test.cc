// A window for each thread: what each thread has touched is exactly what a simulation of that thread alone says,
// whatever the others do at the same time.
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "tests/pages/simulation.h"
#include "tests/pages/trapped_pages.h"

namespace classaccess {
namespace {

using test::Counts;
using test::counts_of;
using test::Simulation;
using test::TrappedPages;
using test::World;

// Drains each thread's records by themselves.
class DrainByThread {
 public:
  DrainByThread()
      : thread_([this] {
          while (!stop_.load()) {
            round();
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          }
          round();
        }) {}
  std::map<uint32_t, std::vector<AccessRecord>>& stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return records_;
  }
  ~DrainByThread() { stop(); }

 private:
  void round() {
    World::get().threads.for_each([&](ThreadState& state) {
      state.ring.drain([&](const AccessRecord& record) { records_[state.thread_id].push_back(record); });
    });
  }

  std::atomic<bool> stop_{false};
  std::map<uint32_t, std::vector<AccessRecord>> records_;
  std::thread thread_;
};

class OwnWindows : public TrappedPages {
 protected:
  void SetUp() override {
    TrappedPages::SetUp();
    if (IsSkipped()) return;
    keys_ = g_key.alloc_page_keys();
    ASSERT_GT(keys_, 8u);
    World::get().drain();
  }

  // f(t) on `count` threads that are recorded and begin together; what each has left.
  template <typename F>
  std::vector<std::vector<AccessRecord>> at_once(size_t count, F&& f) {
    World& world = World::get();
    DrainByThread drain;
    std::vector<uint32_t> ids(count);
    std::atomic<size_t> ready{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < count; ++t) {
      threads.emplace_back([&, t] {
        world.add_this_thread();
        ids[t] = FaultHandler::this_thread()->thread_id;
        ++ready;
        while (ready.load() < count) std::this_thread::yield();
        g_key.deny_here();
        f(t);
        g_key.allow_here();
        leave_page_window();
        world.remove_this_thread();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::map<uint32_t, std::vector<AccessRecord>>& by_id = drain.stop();
    std::vector<std::vector<AccessRecord>> all;
    for (uint32_t id : ids) all.push_back(by_id[id]);
    return all;
  }

  static void expect_is(const std::vector<AccessRecord>& records, const Simulation& simulation) {
    Counts counts = counts_of(records);
    EXPECT_EQ(counts.counts, simulation.counts);
    EXPECT_EQ(counts.transitions, simulation.transitions);
  }

  static Simulation simulated(uint32_t window, const std::vector<uint64_t>& pages) {
    Simulation simulation(window);
    for (uint64_t page : pages) simulation.touch(page);
    return simulation;
  }
};

TEST_F(OwnWindows, FourThreadsAtOnceAreEachTheirSimulation) {
  for (uint32_t window : {1u, 2u, 4u}) {
    for (uint32_t traps_without_key : {0u, OpenPages::kTrapsWithoutKey}) {
      SCOPED_TRACE("window " + std::to_string(window) + " key after " + std::to_string(traps_without_key));
      start(window, 4096, traps_without_key);
      std::vector<std::vector<uint64_t>> walks;
      // Sequential, stride, random and ping-pong over the same 1,000 pages.
      for (const char* order : test::kOrders) walks.push_back(test::walk(order, 1000, 4000));
      auto records = at_once(4, [&](size_t t) {
        for (uint64_t page : walks[t]) *at(page, 64 * t) = 1;
      });
      for (size_t t = 0; t < 4; ++t) expect_is(records[t], simulated(window, walks[t]));
    }
  }
}

// All four have the same few pages open nearly all the time.
TEST_F(OwnWindows, PagesThatAllUseAreCountedForEach) {
  for (uint64_t page_bytes : {4096ull, 65536ull}) {
    for (uint32_t window : {1u, 2u, 4u, 16u, 64u}) {
      for (uint64_t pages : {2u, 5u, 20u, 100u}) {
        SCOPED_TRACE(std::to_string(pages) + " pages, window " + std::to_string(window));
        start(window, page_bytes);
        std::vector<uint64_t> walks[4];
        uint64_t random = pages;
        for (auto& walk : walks) {
          for (int i = 0; i < 2000; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            // Half of the touches go to a few pages.
            walk.push_back((random >> 33) % (random >> 63 ? pages : pages / 2));
          }
        }
        auto records = at_once(4, [&](size_t t) {
          for (uint64_t page : walks[t]) (void)*at(page, 64 * t);
        });
        for (size_t t = 0; t < 4; ++t) expect_is(records[t], simulated(window, walks[t]));
      }
    }
  }
}

// In turns, so that each touch of one thread falls between two of the other.
TEST_F(OwnWindows, TwoThreadsAlternateOnThePagesOfBoth) {
  for (uint32_t window : {1u, 2u, 3u}) {
    start(window);
    const std::vector<uint64_t> walks[2] = {{5, 5, 6, 5, 7, 5, 5, 6, 7, 8, 5, 5}, {5, 6, 5, 5, 7, 6, 5, 5, 7, 7, 5, 6}};
    std::atomic<size_t> turn{0};
    auto records = at_once(2, [&](size_t t) {
      for (size_t i = 0; i < 100 * walks[t].size(); ++i) {
        while (turn.load() != 2 * i + t) std::this_thread::yield();
        (void)*at(walks[t][i % walks[t].size()]);
        turn.store(2 * i + t + 1);
      }
    });
    for (size_t t = 0; t < 2; ++t) {
      Simulation simulation(window);
      for (int i = 0; i < 100; ++i) {
        for (uint64_t page : walks[t]) simulation.touch(page);
      }
      expect_is(records[t], simulation);
    }
  }
}

TEST_F(OwnWindows, APageThatBothHaveOpenStaysOpenForTheOther) {
  start(1);
  std::atomic<int> step{0};
  auto wait_for = [&](int value) {
    while (step.load() != value) std::this_thread::yield();
  };
  auto records = at_once(2, [&](size_t t) {
    if (t == 0) {
      (void)*at(90);
      step = 1;
      wait_for(2);
      (void)*at(90);  // still in its window
      (void)*at(91);
      step = 3;
    } else {
      wait_for(1);
      (void)*at(90);
      step = 2;
      wait_for(3);
      (void)*at(90);  // the other's window has left it, this one's has not
    }
  });
  using Transitions = std::map<std::pair<uint64_t, uint64_t>, uint64_t>;
  Counts first = counts_of(records[0]), second = counts_of(records[1]);
  EXPECT_EQ(first.counts, (std::map<uint64_t, uint64_t>{{90, 1}, {91, 1}}));
  EXPECT_EQ(first.transitions, (Transitions{{{90, 91}, 1}}));
  EXPECT_EQ(second.counts, (std::map<uint64_t, uint64_t>{{90, 1}}));
  EXPECT_EQ(second.transitions, Transitions{});
}

// What several threads use at once costs each a trap now and then, not one for each access.
TEST_F(OwnWindows, APageThatAllUseCostsFewTraps) {
  start(2);
  uint64_t traps[4] = {};
  at_once(4, [&](size_t t) {
    for (int i = 0; i < 200000; ++i) (void)*at(10 + static_cast<uint64_t>(i & 1), 64 * t);
    traps[t] = FaultHandler::this_thread()->counters.traps;
  });
  for (uint64_t count : traps) EXPECT_LT(count, 1000u);
}

TEST_F(OwnWindows, AThreadGetsAKeyWhenItHasTrappedNeedlessly) {
  start(2, 4096, OpenPages::kTrapsWithoutKey);
  ThreadCounters counters;
  std::vector<AccessRecord> records = recorded(
      [&] {
        for (int i = 0; i < 100000; ++i) (void)*at(static_cast<uint64_t>(i & 1));
      },
      &counters);
  EXPECT_EQ(records.size(), 2u);
  EXPECT_GT(counters.traps, OpenPages::kTrapsWithoutKey);
  EXPECT_LE(counters.traps, OpenPages::kTrapsWithoutKey + 4);
}

// Three have keys, the others come when none is left: they are one window, in whose order all of them count.
TEST_F(OwnWindows, ThreadsBeyondTheKeysShareOneWindow) {
  constexpr size_t kThreads = 7, kOwn = 3;
  keys_ = kOwn + 1;
  for (uint32_t window : {1u, 3u}) {
    start(window);
    const uint64_t shared_before = g_counters.page_windows_shared, windows_before = g_counters.page_windows;
    std::vector<uint64_t> pages = test::walk("random", 12, 5000);
    std::atomic<size_t> turn{0};
    auto records = at_once(kThreads, [&](size_t t) {
      for (size_t i = t; i < pages.size(); i += kThreads) {
        while (turn.load() != i) std::this_thread::yield();
        (void)*at(pages[i]);
        turn.store(i + 1);
      }
      while (turn.load() < pages.size()) std::this_thread::yield();  // nobody's key is given back before
    });
    Simulation common(window);
    std::vector<Simulation> own(kOwn, Simulation(window));
    for (size_t i = 0; i < pages.size(); ++i) {
      size_t t = i % kThreads;
      (t < kOwn ? own[t] : common).touch(pages[i]);
    }
    for (size_t t = 0; t < kOwn; ++t) expect_is(records[t], own[t]);
    std::vector<AccessRecord> together;
    for (size_t t = kOwn; t < kThreads; ++t) together.insert(together.end(), records[t].begin(), records[t].end());
    expect_is(together, common);
    EXPECT_EQ(g_counters.page_windows_shared - shared_before, kThreads - kOwn);
    EXPECT_EQ(g_counters.page_windows - windows_before, kOwn + 1);
  }
}

TEST_F(OwnWindows, AKeyIsGivenBackAndUsedAgain) {
  keys_ = 3;
  start(2);
  const uint64_t shared = g_counters.page_windows_shared;
  for (int round = 0; round < 50; ++round) {
    std::vector<uint64_t> pages = test::walk("random", 6, 200);
    auto records = at_once(2, [&](size_t t) {
      for (uint64_t page : pages) (void)*at(page + t);
    });
    for (size_t t = 0; t < 2; ++t) {
      Simulation simulation(2);
      for (uint64_t page : pages) simulation.touch(page + t);
      expect_is(records[t], simulation);
    }
  }
  EXPECT_EQ(g_counters.page_windows_shared, shared);
}

// The fourth comes while one key is lent to a page that the first has open: it traps at each access until the first
// has gone on, and then gets that key. Nothing is miscounted meanwhile.
TEST_F(OwnWindows, AThreadWaitsForAKeyThatIsLent) {
  keys_ = 5;
  start(1);
  const uint64_t shared = g_counters.page_windows_shared;
  std::atomic<int> step{0};
  auto wait_for = [&](int value) {
    while (step.load() != value) std::this_thread::yield();
  };
  uint64_t waiting = 0, with_key = 0;
  auto records = at_once(4, [&](size_t t) {
    auto traps = [] { return FaultHandler::this_thread()->counters.traps; };
    if (t == 0) {
      (void)*at(1);
      step = 1;
      wait_for(4);
      (void)*at(2);  // leaves the page whose key is lent; no other is lent while somebody waits
      step = 5;
    } else if (t < 3) {
      wait_for(static_cast<int>(t));
      (void)*at(10 * t);
      step = static_cast<int>(t) + 1;
    } else {
      wait_for(3);
      uint64_t before = traps();
      for (int i = 0; i < 100; ++i) (void)*at(30);
      waiting = traps() - before;
      step = 4;
      wait_for(5);
      before = traps();
      for (int i = 0; i < 100; ++i) (void)*at(30);
      with_key = traps() - before;
    }
    while (step.load() < 5) std::this_thread::yield();
  });
  EXPECT_EQ(counts_of(records[0]).counts, (std::map<uint64_t, uint64_t>{{1, 1}, {2, 1}}));
  EXPECT_EQ(counts_of(records[3]).counts, (std::map<uint64_t, uint64_t>{{30, 1}}));
  EXPECT_EQ(waiting, 100u);
  EXPECT_LE(with_key, 2u);
  EXPECT_EQ(g_counters.page_windows_shared, shared);
}

TEST_F(OwnWindows, AThreadThatWaitsTooLongShares) {
  keys_ = 5;
  start(1);
  const uint64_t shared = g_counters.page_windows_shared;
  std::atomic<size_t> step{0};
  uint64_t traps = 0;
  at_once(4, [&](size_t t) {
    while (step.load() != t) std::this_thread::yield();
    if (t < 3) {
      (void)*at(10 * t);
    } else {
      for (int i = 0; i < 100000; ++i) (void)*at(30);
      traps = FaultHandler::this_thread()->counters.traps;
    }
    step = t + 1;
    while (step.load() < 4) std::this_thread::yield();
  });
  EXPECT_EQ(g_counters.page_windows_shared, shared + 1);
  EXPECT_GT(traps, OpenPages::kTrapsToWait);
  EXPECT_LT(traps, OpenPages::kTrapsToWait + 10);
}

// A handler of the program's own touches pages: the kernel has taken the thread's rights away for it and gives
// them back at its end, whatever has left the window meanwhile.
TEST_F(OwnWindows, PagesTouchedInASignalHandler) {
  static volatile int* pages[8];
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {
    for (int i = 4; i < 8; ++i) (void)*pages[i];
    (void)*pages[0];
  };
  sigaction(SIGUSR1, &action, &before);
  for (uint32_t window : {1u, 2u, 4u}) {
    start(window);
    for (uint64_t i = 0; i < 8; ++i) pages[i] = at(i);
    Simulation simulation(window);
    for (int round = 0; round < 20; ++round) {
      for (uint64_t page : {0, 1, 2, 1}) simulation.touch(page);
      for (uint64_t page : {4, 5, 6, 7, 0}) simulation.touch(page);
      for (uint64_t page : {1, 2, 0, 3}) simulation.touch(page);
    }
    std::vector<AccessRecord> records = recorded([&] {
      for (int round = 0; round < 20; ++round) {
        for (int page : {0, 1, 2, 1}) (void)*pages[page];
        raise(SIGUSR1);
        for (int page : {1, 2, 0, 3}) (void)*pages[page];
      }
    });
    expect_is(records, simulation);
  }
  sigaction(SIGUSR1, &before, nullptr);
}

// A handler of the program's that comes while the thread holds the lock would wait for it for good.
TEST_F(OwnWindows, SignalsThatComeWhileRightsAreGivenUp) {
  start(1);
  static volatile int* pages[4];
  for (uint64_t i = 0; i < 4; ++i) pages[i] = at(i);
  struct sigaction action = {}, before = {};
  static std::atomic<uint64_t> signals;
  signals = 0;
  action.sa_handler = [](int) {
    for (auto* page : pages) (void)*page;
    ++signals;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, &before);
  World& world = World::get();
  std::vector<AccessRecord> records = recorded([&] {
    ThreadState* thread = FaultHandler::this_thread();
    itimerval often = {{0, 1000}, {0, 1000}}, never = {};
    setitimer(ITIMER_PROF, &often, nullptr);
    const auto page = reinterpret_cast<uint64_t>(at(5));
    while (signals.load() < 100) {
      (void)*at(signals.load() % 3);
      drop_page_rights();
      world.access.touch_run(&world.access, thread, page, 3 * 4096, Op::kLoad, 1);
    }
    setitimer(ITIMER_PROF, &never, nullptr);
  });
  sigaction(SIGPROF, &before, nullptr);
  EXPECT_GT(records.size(), 300u);
}

// While somebody waits nothing is lent, and who has a lent key gives it up when it traps next.
TEST_F(OwnWindows, ManyThreadsWithManyPagesGetKeys) {
  constexpr size_t kThreads = 8;
  start(64);
  const uint64_t shared = g_counters.page_windows_shared;
  std::vector<std::vector<uint64_t>> walks;
  for (size_t t = 0; t < kThreads; ++t) {
    walks.push_back({});
    for (uint64_t page : test::walk("random", 90, 3000 + t)) walks.back().push_back(page * (t + 1) % 97);
  }
  auto records = at_once(kThreads, [&](size_t t) {
    for (uint64_t page : walks[t]) (void)*at(page, 64 * t);
  });
  for (size_t t = 0; t < kThreads; ++t) expect_is(records[t], simulated(64, walks[t]));
  EXPECT_EQ(g_counters.page_windows_shared, shared);
}

// The kernel's mappings are other people's too.
TEST_F(OwnWindows, NoMorePagesAreOpenThanMappingsAreToSpare) {
  start(64);
  OpenPages::Choice choice;
  choice.window = 64;
  choice.keys = keys_;
  choice.traps_without_key = 0;
  choice.most_keyed = 10;
  ASSERT_TRUE(g_open_pages.create(low_, g_armed.high(), choice));
  const uint64_t refused = g_counters.page_opens_refused;
  std::vector<uint64_t> pages = test::walk("random", 200, 3000);
  ThreadCounters counters;
  std::vector<AccessRecord> records = recorded(
      [&] {
        for (uint64_t page : pages) (void)*at(page);
      },
      &counters);
  Simulation simulation = simulated(64, pages);
  expect_is(records, simulation);
  EXPECT_GT(g_counters.page_opens_refused, refused);
  EXPECT_GT(counters.traps, simulation.counted());
}

}  // namespace
}  // namespace classaccess
