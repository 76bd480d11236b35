// The v_ views on a small known recording.
#include <gtest/gtest.h>

#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

class Views : public ::testing::Test {
 protected:
  Views() {
    world.publish_fields(order);
    path = make_directory() + "/views.db";
    EXPECT_EQ(writer.open({path, false, UINT64_MAX, false}), "");
    EXPECT_EQ(writer.start(world.sources(), world.run()), "");
    ThreadState* a = world.add_thread("a");
    ThreadState* b = world.add_thread("b");
    for (int i = 0; i < 3; ++i) push(a, 12, 4, Op::kLoad);  // count: 3 loads by a
    push(b, 12, 4, Op::kRmw);                               // and an rmw by b
    push(a, 16, 8, Op::kStore);                             // total: 2 stores
    push(a, 16, 8, Op::kStore);
    push(a, 24, 4, Op::kStore, kHeap + 0x200);  // name: 1 store, 1 load
    push(a, 24, 4, Op::kLoad, kHeap + 0x200);
    World::push(a, world.access(ints, kHeap + 0x400, 24, 4, Op::kLoad, site, 128));
    AccessRecord lost = world.access(order, 0, 0, 8, Op::kStore, site);
    lost.class_id = 0;
    lost.address = kHeap + 0x800;
    World::push(a, lost);
    writer.stop();
  }
  void push(ThreadState* thread, uint32_t offset, uint32_t size, Op op, uint64_t object = kHeap + 0x100) {
    World::push(thread, world.access(order, object, offset, size, op, site));
  }
  std::vector<std::string> rows(const std::string& sql) { return query(path, sql); }
  using Lines = std::vector<std::string>;

  World world;
  ClassInfo* order = world.add_class("com/acme/Order", 40);
  ClassInfo* ints = world.add_class("[I");
  FieldInfo* count = world.add_field(order, "count", "I", 12, 4);
  FieldInfo* total = world.add_field(order, "total", "J", 16, 8);
  FieldInfo* name = world.add_field(order, "name", "Ljava/lang/String;", 24, 4);
  FieldInfo* unused = world.add_field(order, "unused", "I", 28, 4);
  uint32_t site = world.add_site(SiteKind::kC1, 0x7fff00001000, world.add_method(order, "total", "()J"), 7);
  std::string path;
  Writer writer;
};

TEST_F(Views, Class) {
  EXPECT_EQ(rows("SELECT class, accesses, loads, stores, rmws, bytes, threads, share FROM v_class ORDER BY "
                 "accesses DESC, class"),
            (Lines{"com.acme.Order|8|4|3|1|40|2|80.0", "(not resolved)|1|0|1|0|8|1|10.0", "int[]|1|1|0|0|4|1|10.0"}));
}

TEST_F(Views, Field) {
  EXPECT_EQ(
      rows("SELECT class, field, type, accesses, loads, stores, rmws, bytes, threads, share FROM v_field ORDER BY "
           "accesses DESC, field_id"),
      (Lines{"com.acme.Order|count|int|4|3|0|1|16|2|40.0", "com.acme.Order|total|long|2|0|2|0|16|1|20.0",
             "com.acme.Order|name|java.lang.String|2|1|1|0|8|1|20.0", "com.acme.Order|unused|int|0|0|0|0|0|0|0.0"}));
}

TEST_F(Views, ThreadClass) {
  EXPECT_EQ(
      rows("SELECT thread, class, accesses, loads, stores, rmws FROM v_thread_class WHERE class = 'com.acme.Order'"),
      (Lines{"a|com.acme.Order|7|4|3|0", "b|com.acme.Order|1|0|0|1"}));
}

TEST_F(Views, Site) {
  EXPECT_EQ(rows("SELECT kind, method, line, accesses, loads, stores, rmws, classes, threads FROM v_site"),
            (Lines{"c1|com.acme.Order.total|107|10|5|4|1|2|2"}));
}

TEST_F(Views, NeverRead) {
  EXPECT_EQ(rows("SELECT class, field, stores FROM v_never_read"), (Lines{"com.acme.Order|total|2"}));
}

TEST_F(Views, Shared) {
  EXPECT_EQ(rows("SELECT scope, class, object, gc_id, threads, loads, stores FROM v_shared"),
            (Lines{"class|com.acme.Order|||2|4|4", "object|com.acme.Order|0x700000100|0|2|3|3"}));
}

TEST_F(Views, Access) {
  EXPECT_EQ(
      rows("SELECT thread, class, declaring_class, field, part, element, op, size, site_kind, method, line, object, "
           "address "
           "FROM v_access WHERE part IS NULL OR part = 'element' OR thread = 'b' ORDER BY class"),
      (Lines{"a||||||store|8|c1|com.acme.Order.total|107||0x700000800",
             "b|com.acme.Order|com.acme.Order|count|field||rmw|4|c1|com.acme.Order.total|107|0x700000100|0x70000010c",
             "a|int[]|||element|2|load|4|c1|com.acme.Order.total|107|0x700000400|0x700000418"}));
}

}  // namespace
}  // namespace classaccess
