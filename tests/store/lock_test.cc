// Another process locks the database: nothing is lost, threads go on, and every wait has
// an end.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "agent/base/counters.h"
#include "agent/store/event_batch.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

// A process that runs SQL on demand, with a connection for each transaction.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& path) {
    EXPECT_EQ(pipe(orders_), 0);
    EXPECT_EQ(pipe(answers_), 0);
    child_ = fork();
    if (child_ != 0) {
      close(answers_[1]);
      return;
    }
    close(orders_[1]);
    char sql[256];
    sqlite3* db = nullptr;
    ssize_t n;
    while ((n = read(orders_[0], sql, sizeof(sql) - 1)) > 0) {
      sql[n] = '\0';
      if (db == nullptr) {
        sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
        sqlite3_busy_timeout(db, 20000);
      }
      char ok = sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? 'y' : 'n';
      if (sqlite3_get_autocommit(db) != 0) {
        sqlite3_close(db);
        db = nullptr;
      }
      (void)!write(answers_[1], &ok, 1);
    }
    _exit(0);
  }
  ~OtherProcess() {
    close(orders_[1]);
    close(orders_[0]);
    close(answers_[0]);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  bool run(const std::string& sql) {
    char answer = 'n';
    return write(orders_[1], sql.data(), sql.size()) == static_cast<ssize_t>(sql.size()) &&
           read(answers_[0], &answer, 1) == 1 && answer == 'y';
  }

 private:
  int orders_[2], answers_[2];
  pid_t child_ = 0;
};

class Locked : public ::testing::Test {
 protected:
  // A thread that is never let go hangs the test: this ends it.
  Locked() { alarm(100); }
  ~Locked() override {
    alarm(0);
    g_recording.store(RecordingState::kOff);
  }

  void start(uint64_t max_events = UINT64_MAX, WriterLimits limits = {}) {
    WriterOptions options;
    options.path = path;
    options.max_events = max_events;
    options.limits = limits;
    ASSERT_EQ(writer.open(options), "");
    ASSERT_EQ(writer.start(world.sources(), world.run()), "");
    thread = world.add_thread("main");
    push(10);
    writer.flush();
    ::testing::internal::CaptureStderr();
  }
  void push(int records) {
    for (int i = 0; i < records; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, site));
  }
  static WriterLimits limits_of(uint64_t rows, uint64_t full_seconds = 30, uint64_t end_seconds = 30) {
    return {rows * sizeof(EventRow), full_seconds, end_seconds};
  }
  std::string message() { return ::testing::internal::GetCapturedStderr(); }
  std::string warning() const {
    return "classaccess: another process has locked '" + path +
           "': what is recorded waits in memory until it lets go\n";
  }
  void wait_until_the_ring_stays_full() {
    for (int same = 0; same < 20; usleep(5000)) same = thread->ring.pending() == SpscRing::kCapacity ? same + 1 : 0;
  }
  std::string totals() {
    return query_one(path,
                     "SELECT status, (SELECT count(*) FROM access), (SELECT sum(count) FROM access_count) FROM run");
  }

  std::string path = make_directory() + "/locked.db";
  OtherProcess other{path};
  World world;
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  uint32_t site = world.add_site(SiteKind::kInterpreted, 0x7fff00001000);
  ThreadState* thread = nullptr;
  Writer writer;
};

// Far more records than the ring holds: push() would not return if nobody drained it.
TEST_F(Locked, ThreadsGoOnAndNothingIsLost) {
  start();
  ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
  push(100000);
  // All the rest that is written as it happens.
  order = world.add_class("com/acme/Late", 32);
  site = world.add_site(SiteKind::kC2, 0x7fff00002000);
  world.add_gc(1000100, 1000200, "System.gc()");
  World::name_thread(thread, "renamed");
  World::end_thread(thread);
  while (thread->phase.load() != ThreadPhase::kFree) usleep(1000);
  thread = world.add_thread("late");
  push(50000);
  EXPECT_EQ(totals(), "running|10|10");
  ASSERT_TRUE(other.run("COMMIT"));
  push(10000);
  writer.stop();
  EXPECT_EQ(message(), warning());
  EXPECT_EQ(totals(), "complete|160010|160010");
  EXPECT_EQ(
      query(path,
            "SELECT t.name, ended_ns, c.name, s.kind, count FROM access_count JOIN thread t ON t.id = thread_id "
            "JOIN class c ON c.id = class_id JOIN site s ON s.id = site_id ORDER BY t.id"),
      (std::vector<std::string>{"renamed|4000000|com.acme.Order|interpreted|100010", "late||com.acme.Late|c2|60000"}));
  EXPECT_EQ(query_one(path, "SELECT count(*) FROM gc"), "1");
  EXPECT_EQ(query_one(path,
                      "SELECT count(*) FROM (SELECT t_ns - lag(t_ns) OVER (ORDER BY seq) AS d FROM access) "
                      "WHERE d < 0"),
            "0");
  EXPECT_EQ(query_one(path, "SELECT value FROM diagnostic WHERE name = 'dropped'"), "0");
}

TEST_F(Locked, ShortLocksOfAnotherWriterAgainAndAgain) {
  start();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
    push(5000);
    ASSERT_TRUE(other.run("COMMIT"));
    push(1000);
  }
  writer.stop();
  message();
  EXPECT_EQ(totals(), "complete|120010|120010");
}

TEST_F(Locked, CountsNeedNoMemoryForRows) {
  start(100, limits_of(200));
  ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
  push(100000);
  ASSERT_TRUE(other.run("COMMIT"));
  writer.stop();
  message();
  EXPECT_EQ(totals(), "complete|100|100010");
}

TEST_F(Locked, WithTheMemoryFullThreadsWait) {
  start(UINT64_MAX, limits_of(20000));
  ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
  std::atomic<bool> done{false};
  std::thread pusher([&] {
    push(90000);
    done.store(true);
  });
  wait_until_the_ring_stays_full();
  EXPECT_FALSE(done.load());
  ASSERT_TRUE(other.run("COMMIT"));
  pusher.join();
  writer.stop();
  EXPECT_EQ(message(), warning());
  EXPECT_EQ(totals(), "complete|90010|90010");
}

TEST_F(Locked, ButNotForEver) {
  start(UINT64_MAX, limits_of(20000, 1));
  g_recording.store(RecordingState::kOn);
  ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
  push(90000);
  EXPECT_EQ(g_recording.load(), RecordingState::kClosed);
  writer.stop();
  EXPECT_EQ(message(), warning() + "classaccess: cannot write '" + path +
                           "': another process keeps it locked, and the memory for what waits is full; recording has "
                           "ended, the program goes on (what was committed is readable)\n");
  ASSERT_TRUE(other.run("COMMIT"));
  EXPECT_EQ(totals(), "running|10|10");
}

// Threads that wait when the recording ends get their records in.
TEST_F(Locked, TheEndWaitsForTheLockAndForTheThreads) {
  start(UINT64_MAX, limits_of(5000));
  ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
  std::thread pusher([&] { push(30000); });
  wait_until_the_ring_stays_full();
  g_recording.store(RecordingState::kEnding);
  std::thread holder([&] {
    usleep(500000);
    EXPECT_TRUE(other.run("COMMIT"));
  });
  writer.stop();
  pusher.join();
  holder.join();
  EXPECT_EQ(message(), warning());
  EXPECT_EQ(totals(), "complete|30010|30010");
  EXPECT_EQ(query_one(path, "SELECT value FROM diagnostic WHERE name = 'dropped'"), "0");
}

TEST_F(Locked, TheEndDoesNotWaitForEver) {
  start(UINT64_MAX, limits_of(20000, 30, 1));
  ASSERT_TRUE(other.run("BEGIN IMMEDIATE"));
  push(1000);
  writer.stop();
  EXPECT_EQ(message(), warning() + "classaccess: cannot write '" + path +
                           "': another process keeps it locked; recording has ended, the program goes on (what was "
                           "committed is readable)\n");
  ASSERT_TRUE(other.run("COMMIT"));
  EXPECT_EQ(totals(), "running|10|10");
  EXPECT_EQ(query_one(path, "PRAGMA integrity_check"), "ok");
}

// With a rollback journal it is a reader that holds up the commit.
TEST_F(Locked, AReaderOfARollbackJournal) {
  mkdir((path + "-shm").c_str(), 0755);
  start();
  ASSERT_TRUE(other.run("BEGIN; SELECT count(*) FROM event"));
  push(100000);
  usleep(500000);  // a commit was due
  push(100000);
  ASSERT_TRUE(other.run("COMMIT"));
  writer.stop();
  EXPECT_EQ(message(), warning());
  EXPECT_EQ(totals(), "complete|200010|200010");
  rmdir((path + "-shm").c_str());
}

}  // namespace
}  // namespace classaccess
