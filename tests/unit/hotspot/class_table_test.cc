#include "agent/heap/class_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "agent/base/counters.h"
#include "agent/heap/object_header.h"
#include "tests/unit/hotspot/fake_vm.h"

namespace classaccess {
namespace {

class ClassTableTest : public testing::Test {
 protected:
  void create(std::initializer_list<const char*> patterns = {}) {
    for (const char* pattern : patterns) ASSERT_EQ("", patterns_.add(pattern));
    ASSERT_TRUE(table_.create(&patterns_, &vm_.layout));
  }
  FakeVm vm_;
  ClassPatterns patterns_;
  ClassTable table_;
};

TEST_F(ClassTableTest, ReadsAClassAndItsSupers) {
  create();
  uint64_t object = vm_.make_klass("java/lang/Object", 16, 0);
  uint64_t base = vm_.make_klass("acme/Base", 24, object);
  uint64_t derived = vm_.make_klass("acme/Derived", 33, base);  // bit 0: slow path allocation
  EXPECT_EQ(nullptr, table_.find(derived));
  ClassInfo* row = table_.find_or_add(derived);
  ASSERT_NE(nullptr, row);
  EXPECT_TRUE(row->ready);
  EXPECT_STREQ("acme/Derived", row->name);
  EXPECT_EQ(12u, row->name_length);
  EXPECT_EQ(32u, row->instance_size);
  EXPECT_FALSE(row->is_array);
  EXPECT_EQ(0u, row->loader_class_id);
  EXPECT_STREQ("acme/Base", table_.row(row->super_id).name);
  const ClassInfo& top = table_.row(table_.row(row->super_id).super_id);
  EXPECT_STREQ("java/lang/Object", top.name);
  EXPECT_EQ(0u, top.super_id);
  EXPECT_EQ(row, table_.find(derived));
  EXPECT_EQ(row, table_.find_or_add(derived));
  EXPECT_EQ(4u, table_.end());
}

TEST_F(ClassTableTest, NamesTheLoadersClass) {
  create();
  uint64_t app = vm_.make_klass("jdk/AppLoader", 64, 0);
  uint64_t custom = vm_.make_klass("acme/Loader", 64, 0, vm_.make_loader(app));
  ClassInfo* row = table_.find_or_add(vm_.make_klass("acme/Order", 24, 0, vm_.make_loader(custom)));
  ASSERT_NE(nullptr, row);
  const ClassInfo& loader = table_.row(row->loader_class_id);
  EXPECT_STREQ("acme/Loader", loader.name);
  EXPECT_STREQ("jdk/AppLoader", table_.row(loader.loader_class_id).name);
}

TEST_F(ClassTableTest, RefusesWhatIsNoKlass) {
  create();
  uint64_t good = vm_.make_klass("acme/Order", 24, 0);
  EXPECT_EQ(nullptr, table_.find_or_add(0));
  EXPECT_EQ(nullptr, table_.find_or_add(8));
  EXPECT_EQ(nullptr, table_.find_or_add(good + 4));
  EXPECT_EQ(nullptr, table_.find_or_add(good + 8));
  EXPECT_EQ(nullptr, table_.find_or_add(FakeVm::kHeap)) << "unmapped";
  EXPECT_EQ(nullptr, table_.find_or_add(0xffff800000000000)) << "not canonical for a process";
  auto broken = [&](auto&& change) {
    uint64_t klass = vm_.make_klass("acme/Broken", 24, 0);
    change(klass);
    return table_.find_or_add(klass);
  };
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 8, int32_t{0}); }));
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 8, int32_t{0x7fffff00}); }));
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 8, kIntArray); })) << "array without an array's name";
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 24, uint64_t{0}); }));
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 24, FakeVm::kHeap); }));
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 152, uint64_t{0}); }));
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put(k + 112, uint64_t{0}); }));
  EXPECT_EQ(nullptr, broken([&](uint64_t k) { vm_.put_heap(vm_.mirror_of(k), 16, k + 8); })) << "another's mirror";
  EXPECT_EQ(1u, table_.end());
  EXPECT_NE(nullptr, table_.find_or_add(good));
}

TEST_F(ClassTableTest, AReusedAddressIsAnotherClass) {
  create();
  uint64_t klass = vm_.make_klass("acme/First", 24, 0);
  ClassInfo* first = table_.find_or_add(klass);
  ASSERT_NE(nullptr, first);
  vm_.put(klass + 24, vm_.symbol("acme/Second"));
  EXPECT_EQ(nullptr, table_.find(klass));
  ClassInfo* second = table_.find_or_add(klass);
  ASSERT_NE(nullptr, second);
  EXPECT_NE(first, second);
  EXPECT_STREQ("acme/First", first->name);
  EXPECT_STREQ("acme/Second", second->name);
  EXPECT_EQ(second, table_.find(klass));
  vm_.put(klass + 152, vm_.take(16));
  ClassInfo* third = table_.find_or_add(klass);
  ASSERT_NE(nullptr, third);
  EXPECT_NE(second, third) << "the same name from another loader";
}

// JDK 25 gave a new class not only the Klass address of an unloaded one, but the addresses of
// its name Symbol and ClassLoaderData as well: accesses were counted for the dead class.
TEST_F(ClassTableTest, AReusedAddressWithTheSamePointersIsAnotherClass) {
  create();
  uint64_t klass = vm_.make_klass("acme/First", 24, 0);
  ClassInfo* first = table_.find_or_add(klass);
  ASSERT_NE(nullptr, first);
  uint64_t symbol;
  memcpy(&symbol, reinterpret_cast<void*>(klass + 24), 8);
  g_gc_id.fetch_add(1);
  EXPECT_EQ(first, table_.find(klass));
  memcpy(reinterpret_cast<void*>(symbol + 6), "acme/Other", 10);
  g_gc_id.fetch_add(1);
  EXPECT_EQ(nullptr, table_.find(klass));
  ClassInfo* second = table_.find_or_add(klass);
  ASSERT_NE(nullptr, second);
  EXPECT_NE(first, second);
  EXPECT_STREQ("acme/Other", second->name);
  EXPECT_EQ(second, table_.find(klass));
  memcpy(reinterpret_cast<void*>(symbol + 6), "acme/First", 10);
  g_gc_id.fetch_add(1);
  ClassInfo* third = table_.find_or_add(klass);
  ASSERT_NE(nullptr, third);
  EXPECT_NE(first, third) << "the first is gone for good";
  EXPECT_NE(second, third);
}

TEST_F(ClassTableTest, AClassThatIsNotLinkedTakesNoRowWithFields) {
  vm_.layout.klass_init_state = 176;
  vm_.layout.klass_state_linked = 2;
  create();
  uint64_t klass = vm_.make_klass("acme/First", 24, 0);
  vm_.put(klass + 176, uint8_t{1});
  ClassInfo* first = table_.find_or_add(klass);
  ASSERT_NE(nullptr, first);
  g_gc_id.fetch_add(1);
  EXPECT_EQ(first, table_.find(klass)) << "it has no fields yet";
  FieldSet none;
  first->fields.store(&none);
  vm_.put(klass + 176, uint8_t{2});
  g_gc_id.fetch_add(1);
  EXPECT_EQ(first, table_.find(klass));
  vm_.put(klass + 176, uint8_t{1});
  g_gc_id.fetch_add(1);
  EXPECT_EQ(nullptr, table_.find(klass));
  EXPECT_NE(first, table_.find_or_add(klass));
}

TEST_F(ClassTableTest, ARetiredRowIsNotFound) {
  create();
  uint64_t klass = vm_.make_klass("acme/First", 24, 0);
  ClassInfo* first = table_.find_or_add(klass);
  ASSERT_NE(nullptr, first);
  ClassTable::retire(first);
  EXPECT_EQ(nullptr, table_.find(klass));
  ClassInfo* second = table_.find_or_add(klass);
  ASSERT_NE(nullptr, second);
  EXPECT_NE(first->id, second->id);
}

TEST_F(ClassTableTest, SelectsByPatternsWithSubclasses) {
  create({"acme.Base+", "acme.Shape+"});
  uint64_t object = vm_.make_klass("java/lang/Object", 16, 0);
  uint64_t shape = vm_.make_klass("acme/Shape", 17, object);
  uint64_t base = vm_.make_klass("acme/Base", 24, object);
  uint64_t derived = vm_.make_klass("acme/Derived", 24, vm_.make_klass("acme/Middle", 24, base));
  uint64_t circle = vm_.make_klass("acme/Circle", 24, object);
  uint64_t interfaces = vm_.take(32);
  vm_.put(interfaces, int32_t{1});
  vm_.put(interfaces + 8, shape);
  vm_.put(circle + 40, interfaces);
  EXPECT_TRUE(table_.find_or_add(derived)->selected);
  EXPECT_TRUE(table_.find(base)->selected);
  EXPECT_TRUE(table_.find_or_add(circle)->selected);
  EXPECT_FALSE(table_.find(object)->selected);
}

TEST_F(ClassTableTest, ThreadsThatRaceGetOneId) {
  create();
  constexpr int kClasses = 200, kThreads = 4;
  uint64_t object = vm_.make_klass("java/lang/Object", 16, 0);
  std::vector<uint64_t> klasses;
  for (int i = 0; i < kClasses; ++i) klasses.push_back(vm_.make_klass("acme/C" + std::to_string(i), 24, object));
  std::vector<std::vector<uint32_t>> ids(kThreads, std::vector<uint32_t>(kClasses));
  std::atomic<int> waiting{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) {
      }
      for (int i = 0; i < kClasses; ++i) {
        ClassInfo* row = table_.find_or_add(klasses[static_cast<size_t>(i)]);
        ids[static_cast<size_t>(t)][static_cast<size_t>(i)] = row != nullptr ? row->id : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[0], ids[static_cast<size_t>(t)]);
  EXPECT_EQ(static_cast<size_t>(kClasses), std::set<uint32_t>(ids[0].begin(), ids[0].end()).size());
  EXPECT_EQ(0u, std::set<uint32_t>(ids[0].begin(), ids[0].end()).count(0));
  EXPECT_EQ(kClasses + 2u, table_.end()) << "no id is lost to a race";
  for (uint32_t id = 1; id < table_.end(); ++id) EXPECT_TRUE(table_.row(id).ready);
}

TEST_F(ClassTableTest, SizesOfObjects) {
  create();
  const VmLayout& l = vm_.layout;
  ClassInfo* plain = table_.find_or_add(vm_.make_klass("acme/Order", 24, 0));
  ClassInfo* ints = table_.find_or_add(vm_.make_klass("[I", kIntArray, 0));
  ClassInfo* mirrors = table_.find_or_add(vm_.class_klass);
  ASSERT_TRUE(plain != nullptr && ints != nullptr && mirrors != nullptr);
  EXPECT_TRUE(mirrors->is_mirror);
  uint64_t object = vm_.take_heap(64);
  vm_.put_header(object, plain->klass);
  EXPECT_EQ(plain->klass, klass_of(l, object));
  EXPECT_EQ(24u, object_size(l, *plain, object));
  vm_.put_heap(object, 12, int32_t{5});
  EXPECT_EQ(40u, object_size(l, *ints, object)) << "16 + 5 * 4 rounded up";
  vm_.put_heap(object, 12, int32_t{-1});
  EXPECT_EQ(0u, object_size(l, *ints, object));
  EXPECT_EQ(128u, object_size(l, *mirrors, vm_.mirror_of(plain->klass)));
  uint64_t unreadable = 0x1000 - static_cast<uint64_t>(l.twin_distance);
  EXPECT_EQ(0u, object_size(l, *ints, unreadable));
  EXPECT_EQ(0u, klass_of(l, unreadable));
  vm_.put_heap(object, 8, uint32_t{0});
  EXPECT_EQ(0u, klass_of(l, object));
}

TEST_F(ClassTableTest, SizeOfAStackChunk) {
  vm_.layout.stack_chunk_size = 16;
  vm_.layout.compressed_oops = true;
  create();
  ClassInfo* chunk = table_.find_or_add(vm_.make_klass("jdk/internal/vm/StackChunk", 56 | 1, 0));
  ASSERT_TRUE(chunk != nullptr && chunk->is_stack_chunk);
  uint64_t object = vm_.take_heap(64);
  vm_.put_header(object, chunk->klass);
  vm_.put_heap(object, 16, int32_t{33});
  EXPECT_EQ(56u + 33 * 8 + 2 * 8, object_size(vm_.layout, *chunk, object)) << "66 bits of bitmap";
  vm_.layout.compressed_oops = false;
  EXPECT_EQ(56u + 33 * 8 + 8, object_size(vm_.layout, *chunk, object));
}

TEST(ObjectHeader, KlassInTheMarkWord) {
  FakeVm vm;
  vm.layout.compact_headers = true;
  vm.layout.narrow_klass_shift = 10;
  uint64_t object = vm.take_heap(16);
  vm.put_heap(object, 0, (uint64_t{3} << 42) | 1);
  EXPECT_EQ(vm.layout.narrow_klass_base + (3 << 10), klass_of(vm.layout, object));
  vm.put_heap(object, 0, uint64_t{1});
  EXPECT_EQ(0u, klass_of(vm.layout, object));
}

TEST(ObjectHeader, WideKlass) {
  FakeVm vm;
  vm.layout.compressed_class_pointers = false;
  uint64_t object = vm.take_heap(16);
  vm.put_heap(object, 8, uint64_t{0x7f1234567890});
  EXPECT_EQ(0x7f1234567890u, klass_of(vm.layout, object));
}

TEST(ObjectHeader, PlausibleMarkWords) {
  VmLayout l;
  l.jdk_major = 17;
  l.mark_hash_shift = 8;
  EXPECT_TRUE(mark_is_plausible(1, l));
  EXPECT_TRUE(mark_is_plausible((uint64_t{0x7fffffff} << 8) | (15 << 3) | 1, l)) << "hash and age";
  EXPECT_TRUE(mark_is_plausible(0x7f0012345678, l)) << "stack lock";
  EXPECT_TRUE(mark_is_plausible(0x7f0012345682, l)) << "monitor";
  EXPECT_FALSE(mark_is_plausible(0, l));
  EXPECT_FALSE(mark_is_plausible(0x7f0012345683, l)) << "forwarded: not in Serial";
  EXPECT_FALSE(mark_is_plausible(5, l)) << "biased, but biasing is off";
  EXPECT_FALSE(mark_is_plausible((uint64_t{1} << 39) | 1, l));
  EXPECT_FALSE(mark_is_plausible((1 << 7) | 1, l)) << "the gap below the hash";
  l.biased_locking = true;
  EXPECT_TRUE(mark_is_plausible(5, l));
  l.collector = Collector::kShenandoah;
  EXPECT_TRUE(mark_is_plausible(0x7f0012345683, l));

  VmLayout compact;
  compact.jdk_major = 25;
  compact.compact_headers = true;
  compact.mark_hash_shift = 11;
  EXPECT_TRUE(mark_is_plausible((uint64_t{3} << 42) | 1, compact));
  EXPECT_TRUE(mark_is_plausible(uint64_t{3} << 42, compact)) << "lightweight lock";
  EXPECT_FALSE(mark_is_plausible(1, compact)) << "no klass";
  EXPECT_FALSE(mark_is_plausible((uint64_t{3} << 42) | (1 << 7) | 1, compact));

  VmLayout wide;
  wide.jdk_major = 25;
  wide.mark_hash_shift = 11;
  EXPECT_TRUE(mark_is_plausible(0, wide)) << "lightweight lock of an object without hash";
  EXPECT_FALSE(mark_is_plausible((uint64_t{1} << 42) | 1, wide));
}

}  // namespace
}  // namespace classaccess
