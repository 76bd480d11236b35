// The window model against its simulation.
#include "agent/pages/page_model.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/pages/simulation.h"

namespace classaccess {
namespace {

using test::Simulation;

struct Placed : PageModel {
  explicit Placed(uint32_t window) : memory(PageModel::bytes(window) / sizeof(uint32_t)) {
    place(window, memory.data());
  }
  std::vector<uint32_t> memory;
};

struct Counts {
  std::map<uint64_t, uint64_t> counts;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> transitions;
  void add(uint32_t page, const PageModel::Touch& touch) {
    if (!touch.counted) return;
    ++counts[page];
    if (touch.from != kNoPage) ++transitions[{touch.from, page}];
  }
};

TEST(PageModel, IsTheSimulation) {
  for (uint32_t window : {1u, 2u, 3u, 4u, 16u, 1000u}) {
    for (const char* order : test::kOrders) {
      SCOPED_TRACE(std::string(order) + " window " + std::to_string(window));
      Placed model(window);
      Simulation simulation(window);
      Counts counts;
      for (uint64_t page : test::walk(order, 1000, 20000)) {
        counts.add(static_cast<uint32_t>(page), model.touch(static_cast<uint32_t>(page)));
        simulation.touch(page);
        ASSERT_EQ(model.open_count(), simulation.open.size());
        for (uint32_t i = 0; i < model.open_count(); ++i) ASSERT_EQ(model.open_page(i), simulation.open[i]);
      }
      EXPECT_EQ(counts.counts, simulation.counts);
      EXPECT_EQ(counts.transitions, simulation.transitions);
    }
  }
}

TEST(PageModel, CountsByHand) {
  Placed model(2);
  auto is = [&](uint32_t page, bool counted, uint32_t from, uint32_t closed) {
    PageModel::Touch touch = model.touch(page);
    EXPECT_EQ(touch.counted, counted) << page;
    EXPECT_EQ(touch.from, from) << page;
    EXPECT_EQ(touch.closed, closed) << page;
  };
  is(3, true, kNoPage, kNoPage);
  is(3, false, kNoPage, kNoPage);
  is(4, true, 3, kNoPage);
  is(3, false, kNoPage, kNoPage);  // its touch does not make it younger
  is(5, true, 4, 3);
  is(4, false, kNoPage, kNoPage);
  is(3, true, 5, 4);
}

TEST(PageModel, ForgetsPagesThatAreGone) {
  Placed model(5);
  Simulation simulation(5);
  uint64_t random = 1;
  for (int i = 0; i < 20000; ++i) {
    random = random * 6364136223846793005u + 1;
    auto page = static_cast<uint32_t>(random >> 40) % 20;
    if (random >> 60 == 0) {
      uint32_t end = page + static_cast<uint32_t>(random >> 50) % 5;
      model.forget(page, end);
      simulation.forget(page, end);
    }
    model.touch(page);
    simulation.touch(page);
    ASSERT_EQ(model.open_count(), simulation.open.size());
    for (uint32_t j = 0; j < model.open_count(); ++j) ASSERT_EQ(model.open_page(j), simulation.open[j]);
  }
  EXPECT_FALSE(model.is_open(99));
}

TEST(PageModel, LargerPagesWhereMappingsAreFew) {
  constexpr uint64_t kHeap = 64 << 20;  // 16384 pages of 4k, 1024 of 64k, 32 of 2m
  auto is = [&](uint64_t page_bytes, uint32_t window, uint64_t mappings, uint64_t chosen_bytes,
                uint32_t chosen_window) {
    PageChoice choice = choose_pages(page_bytes, window, kHeap, mappings);
    EXPECT_EQ(choice.page_bytes, chosen_bytes) << window << " of " << page_bytes << " in " << mappings;
    EXPECT_EQ(choice.window, chosen_window) << window << " of " << page_bytes << " in " << mappings;
  };
  is(4096, 1, 2, 4096, 1);
  is(4096, 16000, 32000, 4096, 16000);
  is(4096, 16000, 31999, 65536, 16000);
  is(4096, 16000, 2049, 2 << 20, 16000);
  is(65536, 100, 150, 2 << 20, 100);
  is(2 << 20, 100, 65, 2 << 20, 32);
  is(4096, 4, 7, 2 << 20, 3);
  is(4096, 4, 0, 2 << 20, 1);
}

TEST(PageModel, AClearedWindowIsAnEmptyOne) {
  for (uint32_t window : {1u, 7u, 100u}) {
    Placed model(window);
    for (int round = 0; round < 3; ++round) {
      Simulation simulation(window);
      Counts counts;
      for (uint64_t page : test::walk("random", 150, 3000)) {
        counts.add(static_cast<uint32_t>(page), model.touch(static_cast<uint32_t>(page)));
        simulation.touch(page);
      }
      EXPECT_EQ(counts.counts, simulation.counts);
      EXPECT_EQ(counts.transitions, simulation.transitions);
      model.clear();
      EXPECT_EQ(model.open_count(), 0u);
      for (uint32_t page = 0; page < 150; ++page) ASSERT_FALSE(model.is_open(page)) << page;
    }
  }
}

// Far apart, so that they meet in the table of open pages.
TEST(PageModel, AnyPageNumbers) {
  for (uint32_t window : {1u, 2u, 4u, 8u, 9u}) {
    Placed model(window);
    Simulation simulation(window);
    Counts counts;
    uint64_t random = 7;
    for (int i = 0; i < 20000; ++i) {
      random = random * 6364136223846793005u + 1;
      uint32_t page = static_cast<uint32_t>(random >> 60) * 0x10000000u + static_cast<uint32_t>(random >> 58 & 3);
      counts.add(page, model.touch(page));
      simulation.touch(page);
      ASSERT_EQ(model.open_count(), simulation.open.size());
      for (uint32_t j = 0; j < model.open_count(); ++j) ASSERT_EQ(model.open_page(j), simulation.open[j]);
    }
    EXPECT_EQ(counts.counts, simulation.counts);
    EXPECT_EQ(counts.transitions, simulation.transitions);
  }
}

TEST(PageModel, RefusesWindowsItCannotKeep) {
  EXPECT_EQ(PageModel::bytes(0), 0u);
  EXPECT_EQ(PageModel::bytes(PageModel::kMaxWindow + 1), 0u);
  EXPECT_NE(PageModel::bytes(PageModel::kMaxWindow), 0u);
}

}  // namespace
}  // namespace classaccess
