#include "agent/store/swap_stores.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace classaccess {
namespace {

bool swap(std::initializer_list<uint8_t> bytes) { return is_swap(bytes.begin(), static_cast<uint8_t>(bytes.size())); }

TEST(SwapStores, AreTheExchangesOfMemory) {
  EXPECT_TRUE(swap({0x87, 0x07}));                     // xchg [rdi], eax
  EXPECT_TRUE(swap({0x44, 0x87, 0x20}));               // xchg [rax], r12d
  EXPECT_TRUE(swap({0x4c, 0x87, 0x20}));               // xchg [rax], r12
  EXPECT_TRUE(swap({0x66, 0x44, 0x87, 0x20}));         // xchg [rax], r12w
  EXPECT_TRUE(swap({0x86, 0x10}));                     // xchg [rax], dl
  EXPECT_FALSE(swap({0x87, 0xc1}));                    // xchg ecx, eax
  EXPECT_FALSE(swap({0xf0, 0x44, 0x0f, 0xb1, 0x2a}));  // lock cmpxchg [rdx], r13d
  EXPECT_FALSE(swap({0xf0, 0x0f, 0xc1, 0x02}));        // lock xadd [rdx], eax
  EXPECT_FALSE(swap({0x8b, 0x06}));                    // mov eax, [rsi]
  EXPECT_FALSE(swap({}));
  EXPECT_FALSE(swap({0x87}));
}

TEST(SwapStores, AreOfFunctionsThatReturnNothing) {
  EXPECT_TRUE(swap_is_store("Unsafe_PutIntVolatile"));
  EXPECT_TRUE(swap_is_store(
      "AccessInternal::PostRuntimeDispatch<CardTableBarrierSet::AccessBarrier<402470ul, CardTableBarrierSet>, "
      "(AccessInternal::BarrierType)1, 402470ul>::oop_access_barrier(oopDesc*, long, oopDesc*)"));
  EXPECT_TRUE(swap_is_store("")) << "a library without symbols";
  EXPECT_FALSE(swap_is_store(
      "AccessInternal::PostRuntimeDispatch<CardTableBarrierSet::AccessBarrier<402470ul, CardTableBarrierSet>, "
      "(AccessInternal::BarrierType)7, 402470ul>::oop_access_barrier(oopDesc*, long, oopDesc*)"));
}

}  // namespace
}  // namespace classaccess
