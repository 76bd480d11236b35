// The room for probes: what is asked for is got, nothing twice.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/probe/probe_world.h"

namespace classaccess {
namespace {

TEST(CodeRoom, EveryShapeIsKeptAndNothingOverlaps) {
  ProbeWorld& world = ProbeWorld::get();
  CodeRoom& room = world.sites->room();
  std::mt19937 random(7);
  std::map<uint64_t, uint64_t> taken;
  int got = 0;
  for (int i = 0; i < 4000; ++i) {
    uint64_t from = world.code + random() % 4096;
    JumpShape shape;
    unsigned fixed = random() % 4;
    for (unsigned byte = 0; byte < fixed; ++byte) shape.fixed_mask |= 0xff000000u >> (8 * byte);
    shape.fixed = static_cast<uint32_t>(random()) & shape.fixed_mask;
    shape.low_byte_small = random() % 2 != 0 && fixed < 3;
    uint32_t bytes = 60 + random() % 100;
    uint64_t at = room.allocate(from, shape, bytes);
    if (at == 0) {
      EXPECT_GT(fixed, 0u) << "free space in reach, but no place";
      continue;
    }
    ++got;
    auto displacement = static_cast<int64_t>(at - from);
    ASSERT_EQ(displacement, static_cast<int32_t>(displacement));
    ASSERT_EQ(static_cast<uint32_t>(displacement) & shape.fixed_mask, shape.fixed);
    if (shape.low_byte_small) {
      ASSERT_GE(displacement & 0xff, 0x10);
      ASSERT_LE(displacement & 0xff, 0x5f);
    }
    ASSERT_TRUE(room.contains(at) && room.contains(at + bytes - 1));
    auto next = taken.lower_bound(at);
    ASSERT_TRUE(next == taken.end() || at + bytes <= next->first);
    ASSERT_TRUE(next == taken.begin() || std::prev(next)->second <= at);
    taken[at] = at + bytes;
  }
  EXPECT_GT(got, 3000);
}

TEST(CodeRoom, WhatIsWrittenRunsElsewhere) {
  ProbeWorld& world = ProbeWorld::get();
  CodeRoom& room = world.sites->room();
  uint64_t at = room.allocate(world.code, {}, 16);
  ASSERT_NE(at, 0u);
  EXPECT_NE(reinterpret_cast<uint64_t>(room.write_at(at)), at);
  const uint8_t code[] = {0x48, 0x8d, 0x04, 0x37, 0xc3};  // lea rax, [rdi+rsi]; ret
  std::copy(code, code + sizeof(code), room.write_at(at));
  EXPECT_EQ(ProbeWorld::call(at, 40, 2, 0, 0), 42u);
}

}  // namespace
}  // namespace classaccess
