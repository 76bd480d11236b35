#include "agent/heap/object_starts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

namespace classaccess {
namespace {

// Random sets, clears and look-ups against a std::set.
TEST(ObjectStarts, AgreesWithAnOrderedSet) {
  constexpr uint64_t kLow = 0x70000000, kHigh = kLow + (1ull << 30);
  const char* given = getenv("CLASSACCESS_SEED");
  uint64_t seed = given != nullptr ? strtoull(given, nullptr, 0) : 1;
  SCOPED_TRACE("CLASSACCESS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  ObjectStarts starts;
  ASSERT_TRUE(starts.create(kLow, kHigh));
  std::set<uint64_t> expected;
  for (int i = 0; i < 300000; ++i) {
    uint64_t address = kLow + ((random() % (kHigh - kLow)) & ~7ull);
    uint64_t action = random() % 10;
    if (action < 4) {
      starts.set(address);
      expected.insert(address);
    } else if (action == 4) {
      uint64_t end = std::min<uint64_t>(kHigh, address + ((random() % (1ull << (random() % 26))) & ~7ull));
      starts.clear_range(address, end);
      expected.erase(expected.lower_bound(address), expected.lower_bound(end));
    } else if (action == 5) {
      ASSERT_EQ(starts.is_set(address), expected.count(address) == 1);
    } else {
      auto above = expected.upper_bound(address);
      uint64_t want = above == expected.begin() ? 0 : *std::prev(above);
      ASSERT_EQ(starts.at_or_below(address, kLow), want);
    }
  }
}

TEST(ObjectStarts, StopsAtTheFloor) {
  ObjectStarts starts;
  ASSERT_TRUE(starts.create(0x100000, 0x200000));
  starts.set(0x110000);
  EXPECT_EQ(starts.at_or_below(0x1fffff, 0x110000), 0x110000u);
  EXPECT_EQ(starts.at_or_below(0x1fffff, 0x110008), 0u);
  EXPECT_EQ(starts.at_or_below(0x300000, 0x100000), 0u);
}

TEST(ObjectStarts, FindsTheStartOfAHugeArrayInAnEmptyHeap) {
  ObjectStarts starts;
  ASSERT_TRUE(starts.create(1ull << 32, 9ull << 32));
  starts.set((1ull << 32) + 64);
  EXPECT_EQ(starts.at_or_below((9ull << 32) - 1, 1ull << 32), (1ull << 32) + 64);
}

}  // namespace
}  // namespace classaccess
