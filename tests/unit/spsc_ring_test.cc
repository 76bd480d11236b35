#include "agent/base/spsc_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace classaccess {
namespace {

AccessRecord numbered(uint64_t n) {
  AccessRecord record = {};
  record.t_ns = n;
  record.address = ~n;
  record.site_id = static_cast<uint32_t>(n * 3);
  return record;
}

void expect_is(const AccessRecord& record, uint64_t n) {
  ASSERT_EQ(n, record.t_ns);
  ASSERT_EQ(~n, record.address);
  ASSERT_EQ(static_cast<uint32_t>(n * 3), record.site_id);
}

TEST(SpscRing, EmptyRingDrainsNothing) {
  auto ring = std::make_unique<SpscRing>();
  EXPECT_EQ(0u, ring->pending());
  EXPECT_EQ(0u, ring->drain([](const AccessRecord&) { FAIL(); }));
}

TEST(SpscRing, HoldsItsCapacityThenRefuses) {
  auto ring = std::make_unique<SpscRing>();
  for (uint64_t i = 0; i < SpscRing::kCapacity; ++i) ASSERT_TRUE(ring->push(numbered(i)));
  EXPECT_EQ(SpscRing::kCapacity, ring->pending());
  EXPECT_FALSE(ring->push(numbered(9999)));
  uint64_t next = 0;
  EXPECT_EQ(SpscRing::kCapacity, ring->drain([&](const AccessRecord& record) { expect_is(record, next++); }));
  EXPECT_EQ(0u, ring->pending());
  EXPECT_TRUE(ring->push(numbered(1))) << "room again";
}

TEST(SpscRing, KeepsOrderRoundTheEnd) {
  auto ring = std::make_unique<SpscRing>();
  uint64_t pushed = 0, drained = 0;
  for (int round = 0; round < 10; ++round) {
    for (uint32_t i = 0; i < SpscRing::kCapacity - 37; ++i) ASSERT_TRUE(ring->push(numbered(pushed++)));
    ring->drain([&](const AccessRecord& record) { expect_is(record, drained++); });
    ASSERT_EQ(pushed, drained);
  }
}

TEST(SpscRing, NothingIsLostBetweenTwoThreads) {
  constexpr uint64_t kRecords = 300000;
  auto ring = std::make_unique<SpscRing>();
  uint64_t refused = 0;
  std::thread producer([&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      while (!ring->push(numbered(i))) {
        ++refused;
        std::this_thread::yield();
      }
    }
  });
  uint64_t next = 0;
  bool intact = true;
  while (next < kRecords) {
    uint64_t n = ring->drain([&](const AccessRecord& record) {
      intact &= record.t_ns == next && record.address == ~next && record.site_id == static_cast<uint32_t>(next * 3);
      ++next;
    });
    if (n == 0) std::this_thread::yield();
  }
  producer.join();
  EXPECT_TRUE(intact);
  EXPECT_EQ(kRecords, next);
  EXPECT_EQ(0u, ring->pending());
}

}  // namespace
}  // namespace classaccess
