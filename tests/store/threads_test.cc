// Threads: rows, names, choice of threads=, end, and many at once.
#include <gtest/gtest.h>

#include <thread>

#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

class Threads : public ::testing::Test {
 protected:
  void start() {
    path = make_directory() + "/threads.db";
    ASSERT_EQ(writer.open({path, false, UINT64_MAX, false}), "");
    ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  }
  AccessRecord record() { return world.access(order, kHeap, 0, 8, Op::kLoad, site); }

  World world;
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  uint32_t site = world.add_site(SiteKind::kInterpreted, 0x7fff00001000);
  std::string path;
  Writer writer;
};

TEST_F(Threads, RowsHaveNamesAndTimes) {
  start();
  ThreadState* thread = world.add_thread("worker \xED\xA0\xBD\xED\xB8\x80");
  World::push(thread, record());
  writer.flush();
  EXPECT_EQ(query_one(path, "SELECT tid, name, kind, carrier_id, started_ns, ended_ns FROM thread"),
            "4242|worker \xF0\x9F\x98\x80|platform||10|");
  World::name_thread(thread, "renamed");
  writer.flush();
  EXPECT_EQ(query_one(path, "SELECT name FROM thread"), "renamed");
  World::end_thread(thread);
  writer.flush();
  EXPECT_EQ(query_one(path, "SELECT ended_ns FROM thread"), "4000000");
  EXPECT_EQ(thread->phase.load(), ThreadPhase::kFree);
  writer.stop();
}

TEST_F(Threads, ARenameJustBeforeTheEndIsSeen) {
  start();
  ThreadState* thread = world.add_thread("before");
  World::push(thread, record());
  World::name_thread(thread, "after");
  World::end_thread(thread);
  writer.stop();
  EXPECT_EQ(query_one(path, "SELECT name FROM thread"), "after");
}

TEST_F(Threads, AThreadWithoutANameHasARowAtItsFirstRecord) {
  start();
  World::push(world.add_thread(nullptr), record());
  world.add_thread(nullptr);  // neither name nor record
  writer.stop();
  EXPECT_EQ(query(path, "SELECT name IS NULL FROM thread"), std::vector<std::string>{"1"});
}

TEST_F(Threads, ANameBeingWrittenIsNotRead) {
  start();
  ThreadState* thread = world.add_thread("old");
  thread->name_version.fetch_add(1);  // odd: the owner is writing
  World::push(thread, record());
  writer.flush();
  EXPECT_EQ(query_one(path, "SELECT name IS NULL FROM thread"), "1");
  thread->name_version.fetch_add(1);
  writer.stop();
  EXPECT_EQ(query_one(path, "SELECT name FROM thread"), "old");
}

TEST_F(Threads, ExcludedThreadsLeaveNothing) {
  start();
  World::push(world.add_thread("hidden", ThreadChoice::kExcluded), record());
  writer.stop();
  EXPECT_EQ(
      query_one(
          path,
          "SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM access), (SELECT count(*) FROM access_count)"),
      "0|0|0");
}

TEST_F(Threads, UndecidedRecordsAreKeptUntilTheChoice) {
  start();
  ThreadState* in = world.add_thread(nullptr, ThreadChoice::kUndecided);
  ThreadState* out = world.add_thread(nullptr, ThreadChoice::kUndecided);
  ThreadState* never = world.add_thread(nullptr, ThreadChoice::kUndecided);
  ThreadState* ends = world.add_thread(nullptr, ThreadChoice::kUndecided);
  for (ThreadState* thread : {in, out, never, ends}) World::push(thread, record());
  writer.flush();
  EXPECT_EQ(query_one(path, "SELECT count(*) FROM access"), "0");
  in->choice.store(ThreadChoice::kRecorded);
  out->choice.store(ThreadChoice::kExcluded);
  uint32_t in_id = in->thread_id, never_id = never->thread_id, ends_id = ends->thread_id;
  World::end_thread(ends);
  World::push(in, record());
  writer.flush();
  EXPECT_EQ(query(path, "SELECT thread_id, count(*) FROM access GROUP BY 1 ORDER BY 1"),
            (std::vector<std::string>{std::to_string(in_id) + "|2", std::to_string(ends_id) + "|1"}));
  writer.stop();
  EXPECT_EQ(query_one(path, "SELECT count(*) FROM access WHERE thread_id = " + std::to_string(never_id)), "1");
}

TEST_F(Threads, AThreadThatNeverDecidesDoesNotHang) {
  start();
  ThreadState* thread = world.add_thread(nullptr, ThreadChoice::kUndecided);
  constexpr int kRecords = (1 << 18) + 20000;
  for (int i = 0; i < kRecords; ++i) World::push(thread, record());
  writer.stop();
  EXPECT_EQ(query_number(path, "SELECT sum(count) FROM access_count"), kRecords);
}

TEST_F(Threads, AReusedStateIsAnotherThread) {
  start();
  ThreadState* first = world.add_thread("first");
  uint32_t first_id = first->thread_id;
  World::push(first, record());
  World::end_thread(first);
  writer.flush();
  ThreadState* second = world.add_thread("second");
  ASSERT_EQ(second, first);
  ASSERT_NE(second->thread_id, first_id);
  World::push(second, record());
  writer.stop();
  EXPECT_EQ(query(path, "SELECT name, count FROM access_count JOIN thread ON thread.id = thread_id ORDER BY thread.id"),
            (std::vector<std::string>{"first|1", "second|1"}));
}

// Everything that is pushed arrives, in the thread's order, while a reader looks on.
TEST_F(Threads, ManyThreadsAndAReader) {
  start();
  constexpr int kThreads = 8, kRecords = 30000;
  std::vector<ThreadState*> states;
  for (int i = 0; i < kThreads; ++i) states.push_back(world.add_thread(("t" + std::to_string(i)).c_str()));
  AccessRecord proto = record();
  std::vector<std::thread> pushers;
  for (ThreadState* state : states) {
    pushers.emplace_back([state, proto] {
      AccessRecord r = proto;
      for (int i = 0; i < kRecords; ++i) {
        r.t_ns = proto.t_ns + static_cast<uint64_t>(i);
        World::push(state, r);
      }
      World::end_thread(state);
    });
  }
  std::vector<int64_t> seen;
  for (int i = 0; i < 20; ++i) {
    seen.push_back(query_number(path, "SELECT count(*) FROM access"));
    EXPECT_GE(seen.back(), 0);
    EXPECT_EQ(query_number(path,
                           "SELECT count(*) FROM access a LEFT JOIN thread t ON t.id = a.thread_id LEFT JOIN site s ON "
                           "s.id = a.site_id LEFT JOIN class c ON c.id = a.class_id WHERE t.id IS NULL OR s.id IS NULL "
                           "OR c.id IS NULL"),
              0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (std::thread& pusher : pushers) pusher.join();
  writer.stop();
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(query_number(path, "SELECT count(*) FROM access"), kThreads * kRecords);
  EXPECT_EQ(query_one(path, "SELECT min(count), max(count), count(*) FROM access_count"), "30000|30000|8");
  EXPECT_EQ(
      query_number(path,
                   "SELECT count(*) FROM (SELECT t_ns - lag(t_ns) OVER (PARTITION BY thread_id ORDER BY seq) AS d "
                   "FROM access) WHERE d <> 1"),
      0);
}

TEST_F(Threads, CountsGrowWhileTheRecordingRuns) {
  start();
  ThreadState* thread = world.add_thread("main");
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 100; ++j) World::push(thread, record());
    int64_t now = 0;
    for (int wait = 0; wait < 100 && now < last + 100; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      now = query_number(path, "SELECT coalesce(sum(count), 0) FROM access_count");
    }
    EXPECT_EQ(now, last + 100);
    EXPECT_EQ(query_number(path, "SELECT count(*) FROM access"), now);
    last = now;
  }
  writer.stop();
}

}  // namespace
}  // namespace classaccess
