// Patching while the code goes: HotSpot frees it and puts other code in its place.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "agent/probe/code_patch.h"

namespace classaccess {
namespace {

constexpr size_t kBytes = 4;
const uint8_t kJump[kBytes] = {0xe9, 1, 2, 3};
const uint8_t kOriginal[kBytes] = {0x8b, 0x44, 0x8f, 0x10};
// The new code has bytes of the jump's in common.
const uint8_t kOther[kBytes] = {0xe9, 1, 0x48, 3};

// Taken back over a border of 16 bytes, in the midst of which other code comes: that stays as it is.
TEST(CodePatch, CodeThatComesMeanwhileStays) {
  CodePatch::init();
  if (!CodePatch::can_serialise()) GTEST_SKIP() << "no membarrier(SYNC_CORE)";
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* code = static_cast<uint8_t*>(memory) + 14;
  const auto pc = reinterpret_cast<uint64_t>(code);
  ASSERT_TRUE(CodePatch::is_exact(pc, kBytes));
  std::atomic<int> round{0}, done{0};
  constexpr int kRounds = 20000;
  std::thread reuser([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load(std::memory_order_acquire) != i) {
      }
      for (int wait = i % 300; wait > 0; --wait) asm volatile("pause");
      memcpy(code, kOther, kBytes);
      done.store(i, std::memory_order_release);
    }
  });
  int first = 0, mixed = 0;
  for (int i = 1; i <= kRounds; ++i) {
    memcpy(code, kJump, kBytes);
    round.store(i, std::memory_order_release);
    first += CodePatch::write(pc, kJump, kOriginal, kBytes) ? 1 : 0;
    while (done.load(std::memory_order_acquire) != i) {
    }
    mixed += memcmp(code, kOther, kBytes) != 0 ? 1 : 0;
  }
  reuser.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_GT(first, 0);
  munmap(memory, 4096);
}

TEST(CodePatch, ExactIsWhatLiesInOneLine) {
  EXPECT_TRUE(CodePatch::is_exact(64, 7));
  EXPECT_TRUE(CodePatch::is_exact(64 + 57, 7));
  EXPECT_FALSE(CodePatch::is_exact(64 + 58, 7));
  EXPECT_TRUE(CodePatch::is_exact(127, 1));
}

}  // namespace
}  // namespace classaccess
