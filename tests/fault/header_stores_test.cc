// New objects: the stores before the Klass word are pending, the store of the Klass word
// names the object and covers them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

bool covers(const AccessRecord& klass_store, const AccessRecord& record) {
  return record.address >= klass_store.object &&
         record.address + record.size <= klass_store.object + klass_store.extent;
}

class HeaderStoresTest : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_WORLD();
    World& world = World::get();
    java_thread_ = world.add_this_thread();
    tlab_ = world.take_heap(16384, 64);
    // What lay there before looks like objects.
    for (uint64_t at = tlab_; at < tlab_ + 16384; at += 64) world.vm.put_header(at, world.hidden_klass);
    FaultHandler::this_thread()->hints = {};
    FaultHandler::this_thread()->hints.java_thread = java_thread_;
  }
  void TearDown() override {
    if (java_thread_ == 0) return;
    World& world = World::get();
    world.vm.layout.code_low = world.vm.layout.code_high = 0;
    world.remove_this_thread();
    world.drain();
    world.threads.for_each([&](ThreadState& state) {
      if (state.phase.load() == ThreadPhase::kEnded) world.threads.recycle(&state);
    });
  }
  void allocate(uint64_t bytes) { World::get().set_tlab(java_thread_, tlab_, tlab_ + bytes); }
  uint32_t narrow(uint64_t klass) { return static_cast<uint32_t>(klass - World::get().vm.layout.narrow_klass_base); }
  uint64_t java_thread_ = 0, tlab_ = 0;
};

// As the interpreter and JIT code do: body, mark word, Klass word, then a constructor's store.
__attribute__((noinline)) void initialise_instance(uint64_t object, uint32_t klass) {
  asm volatile(
      "mov $128, %%ecx\n xor %%eax, %%eax\n mov %0, %%rdi\n rep stosq\n"
      "movups %%xmm0, 16(%0)\n"
      "movq $1, (%0)\n movl %1, 8(%0)\n movl $0, 12(%0)\n movl $42, 16(%0)\n"
      :
      : "r"(object), "r"(klass)
      : "rax", "rcx", "rdi", "memory");
}

TEST_F(HeaderStoresTest, AnInstanceIsNamedByItsKlassStore) {
  World& world = World::get();
  allocate(8192);
  uint64_t object = tlab_ + 256;
  uint32_t box = world.class_of(world.box_klass)->id;
  Trace trace = world.trace([&] { initialise_instance(object, narrow(world.box_klass)); });
  ASSERT_EQ(6u, trace.records.size());
  const AccessRecord& klass = trace.records[3];
  EXPECT_EQ(RecordKind::kKlassStore, klass.kind);
  EXPECT_EQ(object + 8, klass.address);
  EXPECT_EQ(object, klass.object);
  EXPECT_EQ(World::kBoxBytes, klass.extent);
  EXPECT_EQ(box, klass.class_id);
  EXPECT_EQ(kFlagSelected, klass.flags);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RecordKind::kPending, trace.records[i].kind) << i;
    EXPECT_EQ(0u, trace.records[i].class_id) << i << ": what lay there before must not be believed";
    EXPECT_TRUE(covers(klass, trace.records[i])) << i;
  }
  EXPECT_EQ(World::kBoxBytes, trace.records[0].size);
  for (int i = 4; i < 6; ++i) {
    EXPECT_EQ(RecordKind::kAccess, trace.records[i].kind) << i;
    EXPECT_EQ(object, trace.records[i].object) << i;
    EXPECT_EQ(box, trace.records[i].class_id) << i;
  }
  EXPECT_TRUE(world.starts.is_set(object));
  EXPECT_EQ(0u, trace.counters.unresolved);
}

// Object.clone copies the header as it copies the fields: the word of the Klass holds a field too.
TEST_F(HeaderStoresTest, AKlassWordCopiedOntoALiveObjectIsNoNewObject) {
  World& world = World::get();
  allocate(8192);
  uint64_t object = tlab_ + 256;
  uint64_t word = narrow(world.box_klass) | uint64_t{7} << 32;
  Trace trace = world.trace([&] {
    initialise_instance(object, narrow(world.box_klass));
    asm volatile("mov %1, 8(%0)" : : "r"(object), "r"(word) : "memory");
  });
  ASSERT_EQ(7u, trace.records.size());
  EXPECT_EQ(RecordKind::kKlassStore, trace.records[3].kind);
  EXPECT_EQ(RecordKind::kAccess, trace.records[6].kind);
  EXPECT_EQ(object, trace.records[6].object);
  EXPECT_EQ(8u, trace.records[6].size);
}

TEST_F(HeaderStoresTest, AClassThatIsNotSelectedSettlesItsPendingStores) {
  World& world = World::get();
  allocate(8192);
  Trace trace = world.trace([&] {
    asm volatile("movq $1, (%0)\n movl %1, 8(%0)\n movl $3, 16(%0)"
                 :
                 : "r"(tlab_), "r"(narrow(world.hidden_klass))
                 : "memory");
  });
  ASSERT_EQ(2u, trace.records.size());
  EXPECT_EQ(RecordKind::kPending, trace.records[0].kind);
  EXPECT_EQ(RecordKind::kKlassStore, trace.records[1].kind);
  EXPECT_EQ(0, trace.records[1].flags & kFlagSelected);
  EXPECT_EQ(64u, trace.records[1].extent);
  EXPECT_EQ(1u, trace.counters.filtered) << "the field";
}

// JIT code stores the length last; until then only the header is the array's.
__attribute__((noinline)) void klass_then_length(uint64_t array, uint32_t klass, uint32_t length) {
  asm volatile("movq $1, (%0)\n movl %1, 8(%0)\n movl %2, 12(%0)\n movl $5, 16(%0)\n"
               :
               : "r"(array), "r"(klass), "r"(length)
               : "memory");
}

TEST_F(HeaderStoresTest, AnArrayOfJitCodeIsCompleteWithItsLength) {
  World& world = World::get();
  allocate(8192);
  uint64_t array = tlab_ + 512;
  world.vm.put_heap(array, 12, int32_t{1000});  // stale
  auto code = reinterpret_cast<uint64_t>(&klass_then_length);
  world.vm.layout.code_low = code;
  world.vm.layout.code_high = code + 64;
  Trace trace = world.trace([&] { klass_then_length(array, narrow(world.int_array), 10); });
  ASSERT_EQ(4u, trace.records.size());
  EXPECT_EQ(RecordKind::kPending, trace.records[0].kind);
  EXPECT_EQ(RecordKind::kKlassStore, trace.records[1].kind);
  EXPECT_EQ(16u, trace.records[1].extent) << "the stale length must not count";
  EXPECT_EQ(RecordKind::kKlassStore, trace.records[2].kind);
  EXPECT_EQ(array + 12, trace.records[2].address);
  EXPECT_EQ(56u, trace.records[2].extent);
  EXPECT_EQ(array, trace.records[3].object);
  EXPECT_EQ(56u, trace.records[3].extent);
  EXPECT_EQ(SiteKind::kStub, world.sites.row(trace.records[3].site_id).kind) << "in the code cache";
}

TEST_F(HeaderStoresTest, AnArrayOfTheVmHasItsLengthFirst) {
  World& world = World::get();
  allocate(8192);
  Trace trace = world.trace([&] {
    asm volatile("movq $1, (%0)\n movl $10, 12(%0)\n movl %1, 8(%0)\n movl $5, 16(%0)"
                 :
                 : "r"(tlab_), "r"(narrow(world.int_array))
                 : "memory");
  });
  ASSERT_EQ(4u, trace.records.size());
  EXPECT_EQ(RecordKind::kPending, trace.records[0].kind);
  EXPECT_EQ(RecordKind::kPending, trace.records[1].kind);
  EXPECT_EQ(RecordKind::kKlassStore, trace.records[2].kind);
  EXPECT_EQ(56u, trace.records[2].extent);
  EXPECT_TRUE(covers(trace.records[2], trace.records[0]));
  EXPECT_TRUE(covers(trace.records[2], trace.records[1]));
  EXPECT_EQ(tlab_, trace.records[3].object);
}

// The memory of dead objects, allocated again: the old starts inside go.
TEST_F(HeaderStoresTest, OldStartsInsideANewObjectGo) {
  World& world = World::get();
  uint64_t object = tlab_ + 1024;
  for (uint64_t at = object; at < object + World::kBoxBytes; at += 64) world.starts.set(at);
  allocate(8192);
  Trace trace = world.trace([&] { initialise_instance(object, narrow(world.box_klass)); });
  for (uint64_t at = object + 8; at < object + World::kBoxBytes; at += 8) EXPECT_FALSE(world.starts.is_set(at));
  EXPECT_TRUE(world.starts.is_set(object));
  EXPECT_EQ(object, trace.records.back().object);
}

TEST_F(HeaderStoresTest, WhatWasInTheTlabBeforeIsWalked) {
  World& world = World::get();
  for (uint64_t at = tlab_; at < tlab_ + 4096; at += 64) world.vm.put_heap(at, 16, uint64_t{0});
  allocate(4096);
  FaultHandler::note_own_tlab();
  EXPECT_EQ(tlab_ + 4096, FaultHandler::this_thread()->hints.tlab_floor);
  for (uint64_t at = tlab_; at < tlab_ + 4096; at += 8) EXPECT_EQ((at - tlab_) % 64 == 0, world.starts.is_set(at));
  allocate(8192);
  Trace trace = world.trace([&] { asm volatile("movl $1, 16(%0)\n movl $1, 4096(%0)" : : "r"(tlab_) : "memory"); });
  EXPECT_EQ(1u, trace.counters.filtered) << "below the floor: a hidden object";
  ASSERT_EQ(1u, trace.records.size());
  EXPECT_EQ(RecordKind::kPending, trace.records[0].kind) << "above it: still being initialised";
}

TEST_F(HeaderStoresTest, ALoadFromNowhereIsUnresolved) {
  World& world = World::get();
  uint64_t nowhere = world.take_heap(8192) + 4096;
  memset(world.twin(nowhere - 4096), 0, 8192);
  Trace trace = world.trace([&] { asm volatile("movl 8(%0), %%eax" : : "r"(nowhere) : "rax", "memory"); });
  ASSERT_EQ(1u, trace.records.size());
  EXPECT_EQ(0u, trace.records[0].class_id);
  EXPECT_EQ(RecordKind::kAccess, trace.records[0].kind);
  EXPECT_EQ(1u, trace.counters.unresolved);
}

// A header that no start bit marks: the register that points at it is evidence.
TEST_F(HeaderStoresTest, ARegisterFindsAnUnmarkedObject) {
  World& world = World::get();
  uint64_t object = world.take_heap(World::kBoxBytes, 64);
  world.vm.put_header(object, world.box_klass);
  Trace trace = world.trace([&] { asm volatile("movl 40(%0), %%eax" : : "r"(object) : "rax", "memory"); });
  ASSERT_EQ(1u, trace.records.size());
  EXPECT_EQ(object, trace.records[0].object);
  EXPECT_EQ(world.class_of(world.box_klass)->id, trace.records[0].class_id);
}

}  // namespace
}  // namespace classaccess::test
