#include "agent/store/pending_stores.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

AccessRecord store_at(uint64_t address, uint64_t t = 0) {
  AccessRecord record = {};
  record.t_ns = t != 0 ? t : address;
  record.address = address;
  record.kind = RecordKind::kPending;
  return record;
}

AccessRecord klass_store(uint64_t object, uint64_t extent) {
  AccessRecord record = {};
  record.object = object;
  record.extent = extent;
  record.class_id = 7;
  record.kind = RecordKind::kKlassStore;
  return record;
}

std::vector<uint64_t> resolved(PendingStores* pending, const AccessRecord& record) {
  std::vector<uint64_t> addresses;
  pending->resolve(record, [&](const AccessRecord& store) {
    EXPECT_EQ(store.object, record.object);
    EXPECT_EQ(store.class_id, 7u);
    addresses.push_back(store.address);
  });
  return addresses;
}

TEST(PendingStores, OnlyTheStoresInsideTheObject) {
  PendingStores pending;
  for (uint64_t address : {0x0ff8, 0x1000, 0x1010, 0x1017, 0x1018}) pending.add(store_at(address));
  EXPECT_EQ(resolved(&pending, klass_store(0x1000, 0x18)), (std::vector<uint64_t>{0x1000, 0x1010, 0x1017}));
  EXPECT_FALSE(pending.empty());
  EXPECT_EQ(resolved(&pending, klass_store(0x1000, 0x18)), std::vector<uint64_t>{});
}

TEST(PendingStores, FindsOldOnesAmongMany) {
  PendingStores pending;
  pending.add(store_at(0x5000, 1));
  for (uint64_t i = 0; i < 1000; ++i) pending.add(store_at(0x10000 + i * 8, 2 + i));
  pending.add(store_at(0x5008, 5000));
  EXPECT_EQ(resolved(&pending, klass_store(0x5000, 16)), (std::vector<uint64_t>{0x5000, 0x5008}));
  EXPECT_EQ(resolved(&pending, klass_store(0x10000, 8 * 1000)).size(), 1000u);
  EXPECT_TRUE(pending.empty());
}

TEST(PendingStores, StaleAfterACollectionAndFullAtTheLimit) {
  PendingStores pending;
  EXPECT_FALSE(pending.stale(3));
  AccessRecord record = store_at(0x1000);
  record.gc_id = 2;
  pending.add(record);
  EXPECT_FALSE(pending.stale(2));
  EXPECT_TRUE(pending.stale(3));
  for (size_t i = 1; i < PendingStores::kLimit; ++i) pending.add(record);
  EXPECT_TRUE(pending.full());
  size_t expired = 0;
  pending.expire([&](const AccessRecord&) { ++expired; });
  EXPECT_EQ(expired, PendingStores::kLimit);
  EXPECT_TRUE(pending.empty());
}

}  // namespace
}  // namespace classaccess
