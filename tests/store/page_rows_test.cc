// The tables of mode=pages, from page records to SQL.
#include "agent/store/page_rows.h"

#include <gtest/gtest.h>

#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

constexpr uint64_t kTenth = PageRows::kBucketNs;

class PageTables : public ::testing::Test {
 protected:
  void SetUp() override {
    path = make_directory() + "/pages.db";
    ASSERT_EQ(writer.open({path}), "");
    ASSERT_EQ(writer.start(world.sources(), world.run()), "");
    main = world.add_thread("main");
    other = world.add_thread("other");
  }

  void touch(ThreadState* thread, uint32_t page, uint32_t from, Op op, uint64_t t_ns) {
    AccessRecord record = {};
    record.kind = RecordKind::kPage;
    record.address = page;
    record.object = from;
    record.op = op;
    record.t_ns = world.started_ns + t_ns;
    World::push(thread, record);
  }
  std::string number_of(const ThreadState* thread) const { return std::to_string(thread->thread_id); }

  World world;
  ThreadState *main = nullptr, *other = nullptr;
  std::string path;
  Writer writer;
};

TEST_F(PageTables, TouchesAreAddedUp) {
  touch(main, 7, UINT32_MAX, Op::kLoad, 5);
  touch(main, 9, 7, Op::kStore, kTenth - 1);
  touch(main, 7, 9, Op::kLoad, kTenth);
  writer.flush();  // the same rows again after a commit
  touch(other, 9, 7, Op::kRmw, 2 * kTenth);
  touch(main, 7, 9, Op::kLoad, kTenth + 3);
  writer.stop();
  std::string m = number_of(main), o = number_of(other);
  EXPECT_EQ(query(path, "SELECT thread_id, page, op, bucket, count FROM page_access ORDER BY page, bucket, op"),
            (std::vector<std::string>{m + "|7|load|0|1", m + "|7|load|1|2", m + "|9|store|0|1", o + "|9|rmw|2|1"}));
  EXPECT_EQ(query(path, "SELECT from_page, to_page, count FROM page_transition ORDER BY 1, 2"),
            (std::vector<std::string>{"7|9|2", "9|7|2"}));
  EXPECT_EQ(query(path, "SELECT page, first_touch_ns, last_touch_ns, region FROM page ORDER BY 1"),
            (std::vector<std::string>{"7|5|" + std::to_string(kTenth + 3) + "|",
                                      "9|" + std::to_string(kTenth - 1) + "|" + std::to_string(2 * kTenth) + "|"}));
  EXPECT_EQ(query_number(path, "SELECT value FROM diagnostic WHERE name = 'page_touches'"), 5);
  EXPECT_EQ(query_number(path, "SELECT count(*) FROM access_count"), 0);
}

TEST_F(PageTables, ContentsAreThoseOfTheLastLook) {
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  ClassInfo* ints = world.add_class("[I");
  touch(main, 1, UINT32_MAX, Op::kLoad, 5);
  touch(main, 2, 1, Op::kStore, 6);
  PageContents first;
  first.shares = {{1, order->id, 1024}};
  first.regions[1] = "eden";
  writer.put_page_contents(first);
  writer.flush();
  PageContents last;
  last.shares = {{1, ints->id, 3072}, {1, order->id, 1024}, {3, order->id, 100}};  // 3 was never touched
  last.regions = {{1, "old"}, {2, "eden+free"}, {3, "old"}};
  writer.put_page_contents(last);
  writer.stop();
  EXPECT_EQ(query(path, "SELECT page, class_id, bytes FROM page_class ORDER BY 1, 3"),
            (std::vector<std::string>{"1|" + std::to_string(order->id) + "|1024",
                                      "1|" + std::to_string(ints->id) + "|3072"}));
  EXPECT_EQ(
      query(path, "SELECT page, region, touches, loads, stores, rmws, threads, classes FROM v_page ORDER BY page"),
      (std::vector<std::string>{"1|old|1|1|0|0|1|int[] 75.0%, com.acme.Order 25.0%", "2|eden+free|1|0|1|0|1|"}));
  EXPECT_EQ(query_one(path, "SELECT address FROM v_page WHERE page = 2"), "0x700002000");
}

}  // namespace
}  // namespace classaccess
