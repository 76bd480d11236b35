// The second method of the verifying build must find a resolver's mistakes: what is right counts as verified,
// a wrong object, a wrong class and two different answers as disagreements, what cannot be parsed as unverified.
#include "agent/jvmti/heap_verify.h"

#include <gtest/gtest.h>

#include "tests/unit/hotspot/fake_vm.h"

namespace classaccess {
namespace {

class HeapVerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(table_.create(&patterns_, &vm_.layout));
    uint64_t object = vm_.make_klass("java/lang/Object", 16, 0);
    order_klass_ = vm_.make_klass("acme/Order", 33, object);  // 32 bytes, allocated in the slow path
    other_klass_ = vm_.make_klass("acme/Other", 24, object);
    array_klass_ = vm_.make_klass("[I", kIntArray, object);
    order_ = table_.find_or_add(order_klass_);
    other_ = table_.find_or_add(other_klass_);
    class_ = table_.find_or_add(vm_.class_klass);
    ASSERT_TRUE(order_ != nullptr && other_ != nullptr && class_ != nullptr);
    first_ = make(order_klass_, 32);
    array_ = make(array_klass_, 16 + 40);
    vm_.put_heap(array_, 12, int32_t{10});
    second_ = make(other_klass_, 24);
    end_ = vm_.take_heap(0);
    g_verify_counters = VerifyCounters{};
    ASSERT_TRUE(verify_.create(&vm_.layout, &table_, 16));
  }

  uint64_t make(uint64_t klass, size_t bytes) {
    uint64_t object = vm_.take_heap(bytes);
    vm_.put_header(object, klass);
    return object;
  }

  void claim(uint64_t address, uint64_t object, ClassInfo* info) {
    Resolution found;
    found.kind = Resolution::kObject;
    found.object = object;
    found.class_info = info;
    g_claims.claim(address, found);
  }

  void check(uint64_t bottom, uint64_t top) {
    HeapSpace space{bottom, top, top, HeapSpace::Kind::kOld};
    verify_.check(&space, 1);
  }

  FakeVm vm_;
  ClassPatterns patterns_;
  ClassTable table_;
  HeapVerify verify_;
  uint64_t order_klass_ = 0, other_klass_ = 0, array_klass_ = 0;
  uint64_t first_ = 0, array_ = 0, second_ = 0, end_ = 0;
  ClassInfo *order_ = nullptr, *other_ = nullptr, *class_ = nullptr;
};

TEST_F(HeapVerifyTest, RightAnswersAreVerified) {
  claim(first_ + 12, first_, order_);
  claim(first_ + 12, first_, order_);
  claim(first_ + 31, first_, order_);
  claim(second_, second_, other_);
  check(first_, end_);
  EXPECT_EQ(4u, g_verify_counters.verified);
  EXPECT_EQ(0u, g_verify_counters.disagreements);
  EXPECT_EQ(0u, g_verify_counters.unverified);
  check(first_, end_);
  EXPECT_EQ(4u, g_verify_counters.verified) << "claims are checked once";
}

TEST_F(HeapVerifyTest, AWrongObjectIsFound) {
  claim(second_ + 16, first_, order_);
  check(first_, end_);
  EXPECT_EQ(0u, g_verify_counters.verified);
  EXPECT_EQ(1u, g_verify_counters.disagreements);
}

TEST_F(HeapVerifyTest, AWrongClassIsFound) {
  claim(second_ + 16, second_, order_);
  check(first_, end_);
  EXPECT_EQ(1u, g_verify_counters.disagreements);
}

TEST_F(HeapVerifyTest, TwoAnswersAreFound) {
  claim(second_ + 16, second_, other_);
  claim(second_ + 16, array_, other_);
  check(first_, end_);
  EXPECT_EQ(1u, g_verify_counters.verified);
  EXPECT_EQ(1u, g_verify_counters.disagreements);
}

TEST_F(HeapVerifyTest, AnInnerWordOfAnArrayIsNoObject) {
  claim(array_ + 40, array_ + 32, order_);
  check(first_, end_);
  EXPECT_EQ(1u, g_verify_counters.disagreements);
}

TEST_F(HeapVerifyTest, AStaticFieldsClassIsTheMirrors) {
  uint64_t mirror = vm_.mirror_of(order_klass_);
  claim(mirror + 104, mirror, order_);
  claim(mirror + 16, mirror, class_);
  check(mirror, mirror + 128);
  EXPECT_EQ(2u, g_verify_counters.verified);
  claim(mirror + 104, mirror, other_);
  check(mirror, mirror + 128);
  EXPECT_EQ(1u, g_verify_counters.disagreements);
}

TEST_F(HeapVerifyTest, WhatLiesBehindAnUnparsableBlockIsUnverified) {
  vm_.put_heap(array_, 8, uint32_t{0});  // no Klass yet
  claim(first_ + 16, first_, order_);
  claim(second_ + 16, second_, other_);
  check(first_, end_);
  EXPECT_EQ(1u, g_verify_counters.verified);
  EXPECT_EQ(0u, g_verify_counters.disagreements);
  EXPECT_EQ(1u, g_verify_counters.unverified);
}

}  // namespace
}  // namespace classaccess
