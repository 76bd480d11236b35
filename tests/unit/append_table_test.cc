// AppendTable and Arena: the two growing memories of the signal side.
#include "agent/base/append_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/arena.h"

namespace classaccess {
namespace {

struct Row {
  std::atomic<bool> ready{false};
  uint64_t value = 0;
};

TEST(AppendTable, StartsAtOneAndZeroed) {
  AppendTable<Row> table;
  ASSERT_TRUE(table.create(8));
  EXPECT_EQ(1u, table.end());
  EXPECT_EQ(1u, table.claim());
  EXPECT_EQ(2u, table.claim());
  EXPECT_EQ(3u, table.end());
  EXPECT_FALSE(table.row(1).ready);
  EXPECT_EQ(0u, table.row(2).value);
}

TEST(AppendTable, AFullTableHandsOutNoRow) {
  AppendTable<Row> table;
  ASSERT_TRUE(table.create(4));
  for (uint32_t id = 1; id < 4; ++id) EXPECT_EQ(id, table.claim());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(0u, table.claim());
  EXPECT_EQ(4u, table.end());
}

TEST(AppendTable, RowsStayWhereTheyAre) {
  AppendTable<Row> table;
  ASSERT_TRUE(table.create(100000));
  Row* first = &table.row(table.claim());
  first->value = 42;
  for (int i = 0; i < 50000; ++i) table.row(table.claim()).value = 7;
  EXPECT_EQ(first, &table.row(1));
  EXPECT_EQ(42u, table.row(1).value);
}

TEST(AppendTable, RefusesWhatTheKernelCannotGive) {
  struct Huge {
    char bytes[1u << 30];
  };
  AppendTable<Huge> table;
  EXPECT_FALSE(table.create(1u << 31));
}

TEST(AppendTable, ThreadsGetDifferentRowsAndTogetherAll) {
  constexpr uint32_t kThreads = 4, kCapacity = 40001;
  AppendTable<Row> table;
  ASSERT_TRUE(table.create(kCapacity));
  std::vector<std::vector<uint32_t>> claimed(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : claimed) {
    threads.emplace_back([&table, &mine] {
      for (uint32_t id; (id = table.claim()) != 0;) mine.push_back(id);
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<uint32_t> all;
  for (auto& mine : claimed) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(kCapacity - 1, all.size());
  for (uint32_t i = 0; i < all.size(); ++i) ASSERT_EQ(i + 1, all[i]);
}

TEST(Arena, GivesAlignedZeroedPieces) {
  Arena arena;
  ASSERT_TRUE(arena.create(4096));
  char* first = static_cast<char*>(arena.take(3));
  char* second = static_cast<char*>(arena.take(1));
  ASSERT_NE(nullptr, first);
  EXPECT_EQ(first + 8, second);
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(first) % 8);
  EXPECT_EQ(0, first[0]);
}

TEST(Arena, CopiesNames) {
  Arena arena;
  ASSERT_TRUE(arena.create(4096));
  const char* name = arena.copy("com/acme/OrderXXX", 14);
  EXPECT_STREQ("com/acme/Order", name);
  EXPECT_STREQ("", arena.copy("", 0));
  EXPECT_STREQ("com/acme/Order", name) << "a later copy leaves it alone";
}

TEST(Arena, AFullArenaGivesNothing) {
  Arena arena;
  ASSERT_TRUE(arena.create(64));
  EXPECT_NE(nullptr, arena.take(64));
  EXPECT_EQ(nullptr, arena.take(1));
  EXPECT_STREQ("", arena.copy("name", 4));
}

TEST(Arena, ThreadsGetDifferentPieces) {
  constexpr int kThreads = 4, kPieces = 5000;
  Arena arena;
  ASSERT_TRUE(arena.create(kThreads * kPieces * 16));
  std::vector<std::vector<const char*>> copies(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPieces; ++i) {
        std::string name = std::to_string(t) + "-" + std::to_string(i);
        copies[t].push_back(arena.copy(name.data(), name.size()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kPieces; ++i) ASSERT_EQ(std::to_string(t) + "-" + std::to_string(i), copies[t][i]);
  }
}

}  // namespace
}  // namespace classaccess
