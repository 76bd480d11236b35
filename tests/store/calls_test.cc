// The tables of calls=, from the call sink to SQL.
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/store/call_rows.h"
#include "call_sink_double.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

using Lines = std::vector<std::string>;

class CallTables : public ::testing::Test {
 protected:
  void open(uint64_t max_events = 1000) {
    path = make_directory() + "/calls.db";
    ASSERT_EQ(writer.open({path, false, max_events, false}), "");
    WriterSources sources = world.sources();
    sources.calls = true;
    ASSERT_EQ(writer.start(sources, world.run()), "");
    main = world.add_thread("main");
    calls = sink.add_thread(main->thread_id, main->tid);
    total = sink.add_function(FunctionKind::kJava, "com.acme.Order.total");
    inflate = sink.add_function(FunctionKind::kNative, "inflate");
  }
  Lines rows(const std::string& sql) { return query(path, sql); }
  void enter(ThreadState* thread, uint32_t context) {
    AccessRecord record = {};
    record.kind = RecordKind::kCallContext;
    record.site_id = context;
    World::push(thread, record);
  }

  World world;
  CallWorld sink;
  std::string path;
  ThreadState* main = nullptr;
  CallThread* calls = nullptr;
  uint32_t total = 0, inflate = 0;
  Writer writer;
};

TEST_F(CallTables, CallsAndStatistics) {
  open();
  const uint64_t t = world.started_ns;
  CallWorld::call(calls, inflate, t + 100, 30, 30, 2, 1);
  CallWorld::call(calls, total, t + 50, 200, 170, 1);
  writer.flush();
  CallWorld::call(calls, total, t + 400, 100, 100, 3, 0, EndedBy::kException);
  CallWorld::call(calls, inflate, t + 600, 5, 5, 5, 4, EndedBy::kUnwound);  // its caller has not ended
  writer.stop();
  EXPECT_EQ(rows("SELECT id, name, kind, library, loaded, refused FROM function ORDER BY id"),
            (Lines{"1|com.acme.Order.total|java||already|", "2|inflate|native|libz.so.1|already|"}));
  EXPECT_EQ(rows("SELECT f.name, th.name, start_ns, end_ns, c.self_ns, depth, ended_by FROM call c JOIN function f ON "
                 "f.id = function_id JOIN thread th ON th.id = thread_id ORDER BY start_ns"),
            (Lines{"com.acme.Order.total|main|50|250|170|0|return", "inflate|main|100|130|30|1|return",
                   "com.acme.Order.total|main|400|500|100|0|exception", "inflate|main|600|605|5|1|unwound"}));
  EXPECT_EQ(rows("SELECT p.start_ns FROM call c LEFT JOIN call p ON p.seq = c.parent_seq ORDER BY c.start_ns"),
            (Lines{"", "50", "", ""}));
  EXPECT_EQ(query_number(path, "SELECT count(*) FROM call WHERE parent_seq IS NOT NULL"), 1);
  EXPECT_EQ(rows("SELECT function_id, count, untimed, total_ns, self_ns, min_ns, max_ns FROM call_stat ORDER BY 1"),
            (Lines{"1|2|0|300|270|100|200", "2|2|0|35|35|5|30"}));
  EXPECT_EQ(rows("SELECT function_id, log2_ns, count FROM call_histogram ORDER BY 1, 2"),
            (Lines{"1|6|1", "1|7|1", "2|2|1", "2|4|1"}));
  EXPECT_EQ(rows("SELECT function, calls, total_ns, self_ns, mean_ns, min_ns, max_ns FROM v_call"),
            (Lines{"com.acme.Order.total|2|300|270|150.0|100|200", "inflate|2|35|35|17.5|5|30"}));
}

TEST_F(CallTables, RowsEndAtTheLimitStatisticsDoNot) {
  open(3);
  for (uint64_t i = 1; i <= 10; ++i) CallWorld::call(calls, total, world.started_ns + i * 100, 10, 10, i);
  writer.stop();
  EXPECT_EQ(query_number(path, "SELECT count(*) FROM call"), 3);
  EXPECT_EQ(query_number(path, "SELECT count FROM call_stat"), 10);
  EXPECT_FALSE(g_call_rows.load());
}

// A number may have several CallThreads, one after the other: a virtual thread.
TEST_F(CallTables, SeveralCallThreadsOfOneThreadAreAddedUp) {
  open();
  CallWorld::call(calls, total, world.started_ns, 10, 10, 1);
  writer.flush();
  calls->phase.store(2);
  writer.flush();
  CallThread* next = sink.add_thread(main->thread_id, main->tid);
  CallWorld::call(next, total, world.started_ns + 50, 30, 20, 1);
  writer.stop();
  EXPECT_EQ(rows("SELECT count, total_ns, self_ns, min_ns, max_ns FROM call_stat"), (Lines{"2|40|30|10|30"}));
  EXPECT_EQ(calls->phase.load(), 0u);  // recycled
  EXPECT_EQ(query_number(path, "SELECT count(DISTINCT seq) FROM call"), 2);
}

// The writer looks while the thread counts: 1 of 1,000,000 calls was missing in 3 of 10 runs.
TEST_F(CallTables, NoCallIsLostWhileTheWriterLooks) {
  open(0);
  constexpr uint64_t kCalls = 30000000;
  CallStat& stat = calls->stats[0].load()[total];
  for (uint64_t i = 0; i < kCalls; ++i) {
    __atomic_store_n(&stat.count, stat.count + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stat.total, stat.total + 5, __ATOMIC_RELAXED);
    __atomic_store_n(&stat.histogram[2], stat.histogram[2] + 1, __ATOMIC_RELAXED);
  }
  writer.stop();
  EXPECT_EQ(rows("SELECT count, total_ns FROM call_stat"),
            (Lines{std::to_string(kCalls) + "|" + std::to_string(5 * kCalls)}));
  EXPECT_EQ(query_number(path, "SELECT sum(count) FROM call_histogram"), static_cast<int64_t>(kCalls));
}

TEST_F(CallTables, UntimedCallsCount) {
  open();
  calls->stats[0].load()[inflate].untimed = 4;
  writer.stop();
  EXPECT_EQ(rows("SELECT count, untimed, total_ns, min_ns, max_ns FROM call_stat"), (Lines{"4|4|0||"}));
  EXPECT_EQ(rows("SELECT function, calls, untimed, mean_ns FROM v_call WHERE calls > 0"), (Lines{"inflate|4|4|"}));
}

TEST_F(CallTables, RefusedLater) {
  open();
  sink.add_function(FunctionKind::kJava, "java.lang.Math.max", "an intrinsic");
  writer.flush();
  EXPECT_EQ(rows("SELECT name, refused FROM function WHERE refused IS NOT NULL"),
            (Lines{"java.lang.Math.max|an intrinsic"}));
  g_call_functions.row(total).refused.store("too large");
  writer.stop();
  EXPECT_EQ(rows("SELECT name, refused FROM function WHERE refused IS NOT NULL ORDER BY id"),
            (Lines{"com.acme.Order.total|too large", "java.lang.Math.max|an intrinsic"}));
}

// Each function under way once, whatever has called what: also past events=N, where records stand for many accesses.
TEST_F(CallTables, ClassesOfCalls) {
  open(2);
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  ClassInfo* ints = world.add_class("[I");
  const uint32_t site = world.add_site(SiteKind::kC2, 0x7fff00001000);
  const uint32_t outer = sink.add_context(0, total), inner = sink.add_context(outer, inflate);
  auto touch = [&](ThreadState* thread, const ClassInfo* klass, Op op, uint64_t times) {
    AccessRecord record = world.access(klass, kHeap + 0x100, 16, 4, op, site, 64);
    record.flags |= kFlagRepeat;
    record.value = times;
    World::push(thread, record);
  };
  ThreadState* other = world.add_thread("other");
  touch(main, order, Op::kLoad, 1);  // no call
  enter(main, outer);
  touch(main, order, Op::kLoad, 2);
  touch(other, order, Op::kStore, 100);  // another thread
  enter(main, inner);
  touch(main, ints, Op::kStore, 3);
  enter(main, outer);
  writer.flush();
  touch(main, order, Op::kLoad, 4);
  enter(main, 0);
  touch(main, order, Op::kRmw, 50);
  writer.stop();
  EXPECT_EQ(rows("SELECT function, class, accesses, loads, stores, rmws, threads FROM v_call_class ORDER BY 1, 2"),
            (Lines{"com.acme.Order.total|com.acme.Order|6|6|0|0|1", "com.acme.Order.total|int[]|3|0|3|0|1",
                   "inflate|int[]|3|0|3|0|1"}));
  EXPECT_EQ(query_number(path, "SELECT sum(count) FROM access_count"), 160);
}

TEST_F(CallTables, ThreadsThatAreNoJavaThreadsAreNamed) {
  open();
  CallThread* own = sink.add_thread(4711, getpid());
  CallWorld::call(own, inflate, world.started_ns, 10, 10, 1);
  writer.stop();
  EXPECT_EQ(rows("SELECT t.name, t.kind, t.tid FROM thread t JOIN call_stat s ON s.thread_id = t.id WHERE t.id = 4711"),
            (Lines{"calls_test|platform|" + std::to_string(getpid())}));
}

TEST(CallSchema, FalseSharing) {
  World world;
  std::string path = make_directory() + "/sharing.db";
  Writer writer;
  ASSERT_EQ(writer.open({path}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  ClassInfo* pair = world.add_class("Pair", 32);
  world.add_field(pair, "left", "I", 12, 4);
  world.add_field(pair, "right", "I", 16, 4);
  world.publish_fields(pair);
  ThreadState *a = world.add_thread("a"), *b = world.add_thread("b");
  for (int i = 0; i < 3; ++i) World::push(a, world.access(pair, kHeap, 12, 4, Op::kStore));
  World::push(b, world.access(pair, kHeap, 16, 4, Op::kLoad));
  World::push(b, world.access(pair, kHeap + 64, 16, 4, Op::kLoad));  // another line
  World::push(a, world.access(pair, kHeap + 128, 12, 4, Op::kStore));
  World::push(b, world.access(pair, kHeap + 128, 12, 4, Op::kLoad));  // the same field: shared in truth
  AccessRecord later = world.access(pair, kHeap + 192, 12, 4, Op::kStore);
  World::push(a, later);
  later = world.access(pair, kHeap + 192, 16, 4, Op::kLoad);
  later.gc_id = 1;  // another object may lie there by now
  World::push(b, later);
  writer.stop();
  EXPECT_EQ(query(path,
                  "SELECT line, class, field, thread, stores, other_class, other_field, other_thread, "
                  "other_touches FROM v_false_sharing"),
            (Lines{"0x700000000|Pair|left|a|3|Pair|right|b|1"}));
}

}  // namespace
}  // namespace classaccess
