// Objects found without a mark, by what the registers hold.
#include "agent/heap/resolver.h"

#include <gtest/gtest.h>

#include "tests/unit/hotspot/fake_vm.h"

namespace classaccess {
namespace {

class ResolverTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(table_.create(&patterns_, &vm_.layout));
    ASSERT_TRUE(starts_.create(vm_.layout.heap_low, vm_.layout.heap_high));
    resolver_.create(&table_, &starts_, &vm_.layout);
    uint64_t object = vm_.make_klass("java/lang/Object", 16, 0);
    array_ = vm_.take_heap(16 + 40);
    vm_.put_header(array_, vm_.make_klass("[I", kIntArray, object));
    vm_.put_heap(array_, 12, int32_t{10});
    order_ = vm_.take_heap(48);
    vm_.put_header(order_, vm_.make_klass("acme/Order", 48, object));
  }

  Resolution load(uint64_t address) {
    ResolveQuery query;
    query.address = address;
    query.registers = registers_;
    ResolverHints hints;
    return resolver_.resolve(query, &hints);
  }

  FakeVm vm_;
  ClassPatterns patterns_;
  ClassTable table_;
  ObjectStarts starts_;
  Resolver resolver_;
  uint64_t registers_[16] = {};
  uint64_t array_ = 0, order_ = 0;
};

// java_lang_String::equals in 17: movzx edx, byte ptr [rcx+rax], rcx at the first element, nothing at the header.
TEST_F(ResolverTest, AnArrayIsFoundByItsFirstElement) {
  EXPECT_EQ(Resolution::kUnknown, load(array_ + 16 + 8).kind);
  registers_[1] = array_ + 16;
  Resolution found = load(array_ + 16 + 8);
  ASSERT_EQ(Resolution::kObject, found.kind);
  EXPECT_EQ(array_, found.object);
  EXPECT_STREQ("[I", found.class_info->name);
  EXPECT_EQ(Resolution::kUnknown, load(array_ + 16 + 40).kind) << "behind the array";
}

TEST_F(ResolverTest, AnInstanceIsNotFoundByAWordInside) {
  registers_[1] = order_ + 16;
  EXPECT_EQ(Resolution::kUnknown, load(order_ + 24).kind);
  registers_[1] = order_;
  EXPECT_EQ(order_, load(order_ + 24).object);
}

// initialize_static_primitive_field: the Class object names its Klass, the Klass its Class object not yet. The
// verifying build found such stores under java.lang.Class.
TEST_F(ResolverTest, AStaticFieldBelongsToItsClassBeforeTheKlassHasItsMirror) {
  uint64_t klass = vm_.make_klass("acme/Constants", 16, 0);
  uint64_t mirror = vm_.mirror_of(klass);
  vm_.put(klass + vm_.layout.klass_java_mirror, uint64_t{0});
  starts_.set(mirror);
  Resolution found = load(mirror + 124);
  ASSERT_EQ(Resolution::kObject, found.kind);
  EXPECT_EQ(mirror, found.object);
  EXPECT_TRUE(found.mirror);
  EXPECT_STREQ("acme/Constants", found.class_info->name);
}

}  // namespace
}  // namespace classaccess
