#include "agent/protect/armed_pages.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

constexpr uint64_t kPage = ArmedPages::kPageBytes;
constexpr uint64_t kLow = 0x700000000;
constexpr uint64_t kPages = 200;
constexpr uint64_t kHigh = kLow + kPages * kPage;

uint64_t page(uint64_t n) { return kLow + n * kPage; }

class ArmedPagesTest : public testing::Test {
 protected:
  ArmedPagesTest() { EXPECT_TRUE(pages_.create(kLow, kHigh)); }
  ArmedPages pages_;
};

TEST_F(ArmedPagesTest, NothingIsArmedAtFirst) {
  for (uint64_t n = 0; n < kPages; ++n) EXPECT_FALSE(pages_.armed(page(n)));
  EXPECT_EQ(0u, pages_.armed_ahead(kLow, kPage));
  EXPECT_EQ(0u, pages_.armed_behind(kHigh - 1, kPage));
}

TEST_F(ArmedPagesTest, BeforeCreateNothingIsArmed) {
  ArmedPages none;
  none.set(0, kHigh);
  EXPECT_FALSE(none.armed(0));
  EXPECT_FALSE(none.armed(kLow));
  EXPECT_FALSE(none.in_range(0));
}

TEST_F(ArmedPagesTest, RangeBordersAreExact) {
  EXPECT_FALSE(pages_.in_range(kLow - 1));
  EXPECT_TRUE(pages_.in_range(kLow));
  EXPECT_TRUE(pages_.in_range(kHigh - 1));
  EXPECT_FALSE(pages_.in_range(kHigh));
  pages_.set(0, ~0ull);
  EXPECT_FALSE(pages_.armed(kLow - 1));
  EXPECT_TRUE(pages_.armed(kLow));
  EXPECT_TRUE(pages_.armed(kHigh - 1));
  EXPECT_FALSE(pages_.armed(kHigh));
  EXPECT_FALSE(pages_.armed(0));
}

// Every start and length around the borders of the 64-page words.
TEST_F(ArmedPagesTest, SetAndClearTouchTheirPagesOnly) {
  for (uint64_t first : {0, 1, 62, 63, 64, 65, 127, 128, 199}) {
    for (uint64_t count : {1, 2, 63, 64, 65, 128, 129, 200}) {
      uint64_t end = first + count < kPages ? first + count : kPages;
      pages_.set(page(first), page(first + count));
      for (uint64_t n = 0; n < kPages; ++n) {
        ASSERT_EQ(n >= first && n < end, pages_.armed(page(n))) << first << "+" << count << " page " << n;
        ASSERT_EQ(n >= first && n < end, pages_.armed(page(n) + kPage - 1)) << first << "+" << count << " page " << n;
      }
      pages_.set(kLow, kHigh);
      pages_.clear(page(first), page(first + count));
      for (uint64_t n = 0; n < kPages; ++n) {
        ASSERT_EQ(n < first || n >= end, pages_.armed(page(n))) << first << "+" << count << " page " << n;
      }
      pages_.clear(kLow, kHigh);
    }
  }
}

TEST_F(ArmedPagesTest, PartsOfPagesCountAsWholeOnes) {
  pages_.set(page(3) + 1, page(3) + 2);
  EXPECT_FALSE(pages_.armed(page(3) - 1));
  EXPECT_TRUE(pages_.armed(page(3)));
  EXPECT_TRUE(pages_.armed(page(4) - 1));
  EXPECT_FALSE(pages_.armed(page(4)));
  pages_.set(page(5), page(5));
  EXPECT_FALSE(pages_.armed(page(5)));
}

TEST_F(ArmedPagesTest, LimitHoldsForSetNotForClear) {
  pages_.limit(page(10) + 5, page(20) - 5);
  EXPECT_EQ(page(10), pages_.limit_low());
  EXPECT_EQ(page(20), pages_.limit_high());
  pages_.set(kLow, kHigh);
  for (uint64_t n = 0; n < kPages; ++n) EXPECT_EQ(n >= 10 && n < 20, pages_.armed(page(n))) << n;
  pages_.set(kLow, page(5));
  EXPECT_FALSE(pages_.armed(kLow));
  pages_.clear(kLow, kHigh);
  for (uint64_t n = 0; n < kPages; ++n) EXPECT_FALSE(pages_.armed(page(n))) << n;
}

TEST_F(ArmedPagesTest, AheadStopsAtTheFirstGap) {
  pages_.set(page(60), page(70));
  EXPECT_EQ(0u, pages_.armed_ahead(page(59) + 4095, 100));
  EXPECT_EQ(100u, pages_.armed_ahead(page(60), 100));
  EXPECT_EQ(10 * kPage, pages_.armed_ahead(page(60), 100 * kPage));
  EXPECT_EQ(10 * kPage - 7, pages_.armed_ahead(page(60) + 7, 100 * kPage));
  EXPECT_EQ(10 * kPage - 7, pages_.armed_ahead(page(60) + 7, 10 * kPage - 7));
  EXPECT_EQ(1u, pages_.armed_ahead(page(70) - 1, 100 * kPage));
  EXPECT_EQ(0u, pages_.armed_ahead(page(70), 100));
  EXPECT_EQ(0u, pages_.armed_ahead(page(60), 0));
  pages_.set(page(190), kHigh);
  EXPECT_EQ(10 * kPage, pages_.armed_ahead(page(190), 1ull << 40)) << "the range's end is a gap";
}

TEST_F(ArmedPagesTest, BehindStopsAtTheFirstGap) {
  pages_.set(page(60), page(70));
  EXPECT_EQ(0u, pages_.armed_behind(page(70), 100));
  EXPECT_EQ(1u, pages_.armed_behind(page(60), 100));
  EXPECT_EQ(8u, pages_.armed_behind(page(60) + 7, 100));
  EXPECT_EQ(100u, pages_.armed_behind(page(70) - 1, 100));
  EXPECT_EQ(10 * kPage, pages_.armed_behind(page(70) - 1, 1ull << 40));
  EXPECT_EQ(0u, pages_.armed_behind(page(65), 0));
  pages_.set(kLow, page(2));
  EXPECT_EQ(2 * kPage, pages_.armed_behind(page(2) - 1, 1ull << 40)) << "the range's start is a gap";
}

TEST_F(ArmedPagesTest, EveryByteOfARangeMustBeArmed) {
  pages_.set(page(63), page(65));
  EXPECT_TRUE(pages_.armed(page(63), 2 * kPage));
  EXPECT_FALSE(pages_.armed(page(63), 2 * kPage + 1));
  EXPECT_FALSE(pages_.armed(page(63) - 1, 2));
  EXPECT_TRUE(pages_.armed(page(64) - 4, 8));
  EXPECT_TRUE(pages_.armed(page(65) - 8, 8));
  EXPECT_FALSE(pages_.armed(page(65) - 7, 8));
  EXPECT_TRUE(pages_.armed(page(63), 0));
  pages_.clear(page(64), page(65));
  pages_.set(page(65), page(66));
  EXPECT_FALSE(pages_.armed(page(63), 3 * kPage)) << "a gap in the middle";
}

}  // namespace
}  // namespace classaccess
