#include "agent/store/classify.h"

#include <gtest/gtest.h>

#include <string>

#include "world.h"

namespace classaccess {
namespace {

constexpr uint64_t kObject = kHeap + 0x1000;

class Classify : public ::testing::Test {
 protected:
  Classify() {
    order = world.add_class("com/acme/Order", 40);
    count = world.add_field(order, "count", "I", 12, 4);
    total = world.add_field(order, "total", "J", 16, 8);
    flag = world.add_field(order, "flag", "Z", 25, 1);
    name = world.add_field(order, "name", "Ljava/lang/String;", 28, 4);
    next = world.add_field(order, "NEXT", "I", 112, 4, true);
    limit = world.add_field(order, "LIMIT", "J", 120, 8, true);
    world.publish_fields(order);
    ints = world.add_class("[I");
    bytes = world.add_class("[B");
  }

  // "part:field@offset+size ..." of the rows.
  std::string of(const AccessRecord& record, uint8_t bytecode = 0) {
    std::vector<AccessRow> rows;
    const ClassInfo* klass = record.class_id != 0 ? &world.classes.row(record.class_id) : nullptr;
    classify(record, klass, klass != nullptr ? klass->fields.load() : nullptr, bytecode, world.layout, &rows);
    static const char* const kParts[] = {"field", "static",     "element", "length",  "mark",
                                         "klass", "null_check", "init",    "padding", "unknown"};
    std::string text;
    for (const AccessRow& row : rows) {
      if (!text.empty()) text += ' ';
      text += kParts[static_cast<int>(row.part)];
      if (row.field_id != 0) text += ":" + std::to_string(row.field_id);
      text += "@" + std::to_string(static_cast<int64_t>(row.address - record.object)) + "+" + std::to_string(row.size);
      EXPECT_EQ(row.class_id == 0, row.part == Part::kUnknown) << text;
    }
    return text;
  }
  std::string load(const ClassInfo* klass, uint32_t offset, uint32_t size, uint32_t extent = 0) {
    return of(world.access(klass, kObject, offset, size, Op::kLoad, 0, extent));
  }
  std::string store(const ClassInfo* klass, uint32_t offset, uint32_t size, uint8_t bytecode = 0) {
    return of(world.access(klass, kObject, offset, size, Op::kStore, 0, 4096), bytecode);
  }

  World world;
  ClassInfo *order, *ints, *bytes;
  FieldInfo *count, *total, *flag, *name, *next, *limit;
};

TEST_F(Classify, EachFieldByItsOffset) {
  EXPECT_EQ(load(order, 12, 4), "field:1@12+4");
  EXPECT_EQ(load(order, 16, 8), "field:2@16+8");
  EXPECT_EQ(load(order, 25, 1), "field:3@25+1");
  EXPECT_EQ(load(order, 28, 4), "field:4@28+4");
}

TEST_F(Classify, PartOfAField) { EXPECT_EQ(load(order, 20, 2), "field:2@20+2"); }

TEST_F(Classify, SeveralFieldsGiveARowEachWithTheGapsAsPadding) {
  EXPECT_EQ(load(order, 12, 12), "field:1@12+4 field:2@16+8");
  EXPECT_EQ(load(order, 20, 12), "field:2@20+4 padding@24+1 field:3@25+1 padding@26+2 field:4@28+4");
  EXPECT_EQ(load(order, 24, 1), "padding@24+1");
  EXPECT_EQ(load(order, 32, 8), "padding@32+8");
}

TEST_F(Classify, HeaderWords) {
  EXPECT_EQ(load(order, 0, 8), "mark@0+8");
  EXPECT_EQ(load(order, 8, 4), "klass@8+4");
  EXPECT_EQ(load(order, 0, 16), "mark@0+8 klass@8+4 field:1@12+4");
  EXPECT_EQ(load(ints, 12, 4, 64), "length@12+4");
  EXPECT_EQ(of(world.access(order, kObject, 0, 8, Op::kRmw)), "mark@0+8");
}

TEST_F(Classify, HeaderWithoutCompressedClassPointers) {
  world.layout.compressed_class_pointers = false;
  world.layout.array_length_offset = 16;
  ints->layout_helper = static_cast<int32_t>(0xC0000000u | 24u << 16 | 2);
  EXPECT_EQ(load(order, 8, 8), "klass@8+8");
  EXPECT_EQ(load(ints, 16, 8, 64), "length@16+4 padding@20+4");
  EXPECT_EQ(load(ints, 24, 4, 64), "element@24+4");
}

TEST_F(Classify, CompactHeadersHaveTheKlassInTheMark) {
  world.layout.compact_headers = true;
  world.layout.array_length_offset = 8;
  ints->layout_helper = static_cast<int32_t>(0xC0000000u | 12u << 16 | 2);
  EXPECT_EQ(load(ints, 0, 8, 64), "mark@0+8");
  EXPECT_EQ(load(ints, 4, 4, 64), "klass@4+4") << "the upper half is read for the Klass only";
  EXPECT_EQ(load(ints, 8, 4, 64), "length@8+4");
  EXPECT_EQ(load(ints, 12, 4, 64), "element@12+4");
  EXPECT_EQ(load(order, 8, 8), "padding@8+4 field:1@12+4");
}

TEST_F(Classify, ElementsAreOneRow) {
  EXPECT_EQ(load(ints, 16, 4, 4096), "element@16+4");
  EXPECT_EQ(load(ints, 24, 64, 4096), "element@24+64");
  EXPECT_EQ(load(ints, 8, 16, 4096), "klass@8+4 length@12+4 element@16+8");
  EXPECT_EQ(load(bytes, 19, 8, 4096), "element@19+8");
}

TEST_F(Classify, BytesOutsideTheObjectAreNotCredited) {
  AccessRecord behind = world.access(ints, kObject, 24, 16, Op::kStore, 0, 32);
  EXPECT_EQ(of(behind), "element@24+8 unknown@32+8");
  AccessRecord before = world.access(order, kObject, 0, 8, Op::kLoad);
  before.address = kObject - 4;
  EXPECT_EQ(of(before), "unknown@-4+4 mark@0+4");
}

// String.indexOf of C2 loads 16 bytes of a needle of two.
TEST_F(Classify, AVectorLoadPastTheEndIsPadding) {
  EXPECT_EQ(load(bytes, 16, 16, 24), "element@16+8 padding@24+8");
  EXPECT_EQ(load(order, 36, 8, 40), "padding@36+4 padding@40+4");
}

TEST_F(Classify, StaticsByTheirOffsetInTheMirror) {
  AccessRecord record = world.access(order, kObject, 112, 4, Op::kLoad, 0, 128);
  record.flags |= kFlagMirror;
  EXPECT_EQ(of(record), "static:5@112+4");
  record.size = 16;
  EXPECT_EQ(of(record), "static:5@112+4 padding@116+4 static:6@120+8");
}

TEST_F(Classify, StaticsOfAClassWithoutPublishedFieldsAreInit) {
  ClassInfo* fresh = world.add_class("com/acme/Fresh", 16);
  AccessRecord record = world.access(fresh, kObject, 112, 4, Op::kLoad, 0, 128);
  record.flags |= kFlagMirror;
  EXPECT_EQ(of(record), "init@112+4");
}

TEST_F(Classify, FieldsNotPublishedYet) {
  ClassInfo* fresh = world.add_class("com/acme/Fresh", 24);
  EXPECT_EQ(load(fresh, 12, 4), "field@12+4");
  EXPECT_EQ(of(world.access(fresh, kObject, 12, 4, Op::kStore)), "init@12+4");
}

TEST_F(Classify, CreationIsInit) {
  AccessRecord klass_store = world.access(order, kObject, 8, 4, Op::kStore);
  klass_store.kind = RecordKind::kKlassStore;
  EXPECT_EQ(of(klass_store), "init@8+4");
  EXPECT_EQ(store(ints, 12, 4), "init@12+4");
  for (uint8_t bytecode : {187, 188, 189, 197})
    EXPECT_EQ(store(order, 12, 12, bytecode), "init@12+12") << int{bytecode};
  EXPECT_EQ(store(order, 12, 4, 181), "field:1@12+4");  // putfield
  EXPECT_EQ(of(world.access(order, kObject, 12, 4, Op::kLoad), 187), "field:1@12+4");
}

TEST_F(Classify, NullChecks) {
  AccessRecord record = world.access(order, kObject, 0, 4, Op::kLoad);
  record.flags |= kFlagNullCheck;
  EXPECT_EQ(of(record), "null_check@0+4");
}

TEST_F(Classify, WithoutAClass) {
  AccessRecord record = world.access(order, kObject, 12, 4, Op::kLoad);
  record.class_id = 0;
  EXPECT_EQ(of(record), "unknown@12+4");
  record.size = 0;
  EXPECT_EQ(of(record), "unknown@12+0");
}

TEST_F(Classify, InheritedFieldsCount) {
  ClassInfo* sub = world.add_class("com/acme/Rush", 48, order);
  FieldInfo* due = world.add_field(sub, "due", "J", 40, 8);
  world.publish_fields(sub);
  EXPECT_EQ(load(sub, 12, 4), "field:1@12+4");
  EXPECT_EQ(load(sub, 40, 8), "field:" + std::to_string(due->id) + "@40+8");
}

}  // namespace
}  // namespace classaccess
