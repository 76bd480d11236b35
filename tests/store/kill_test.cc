// kill -9 at random moments: the file opens, is sound, every row joins, counts and rows
// agree, and at most the last second is missing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "agent/base/clock.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

// What the contract allows to be missing; sanitizers slow everything down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kAllowedSeconds = 5;
#else
constexpr uint64_t kAllowedSeconds = 1;
#endif

struct Progress {
  std::atomic<uint64_t> old_enough{0};  // records pushed kAllowedSeconds ago or earlier
};

// Pushes for ever: new classes, fields, sites and threads all the time.
[[noreturn]] void record_for_ever(const std::string& path, Progress* progress) {
  World world;
  Writer writer;
  if (!writer.open({path, false, UINT64_MAX, false}).empty()) _exit(1);
  if (!writer.start(world.sources(), world.run()).empty()) _exit(2);
  std::vector<std::pair<uint64_t, uint64_t>> history;  // time, records pushed
  size_t next_old = 0;
  uint64_t pushed = 0;
  ThreadState* thread = nullptr;
  ClassInfo* klass = nullptr;
  uint32_t site = 0;
  for (uint64_t i = 0;; ++i) {
    if (i % 500 == 0) {
      klass = world.add_class("com/acme/Made", 32, klass);
      world.add_field(klass, "x", "I", 12, 4);
      if (i % 20000 == 0) klass->super_id = 0;
      if (klass->super_id == 0) world.publish_fields(klass);
      site = world.add_site(SiteKind::kC2, 0x7fff00000000 + i);
    }
    if (i % 3000 == 0) {
      if (thread != nullptr) World::end_thread(thread);
      thread = world.add_thread("worker");
    }
    World::push(thread, world.access(klass, kHeap + i % 1000 * 64, 12, 4, i % 2 == 0 ? Op::kLoad : Op::kStore, site));
    ++pushed;
    if (i % 200 == 0) {
      uint64_t now = monotonic_ns();
      history.emplace_back(now, pushed);
      while (next_old < history.size() && history[next_old].first + kAllowedSeconds * 1000000000u < now) {
        progress->old_enough.store(history[next_old++].second);
      }
      usleep(500);
    }
  }
}

TEST(Kill, AtRandomMoments) {
  std::random_device device;
  uint32_t seed = device();
  std::mt19937 random(seed);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    std::string path = make_directory() + "/killed.db";
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    Progress* progress = new (memory) Progress;
    pid_t child = fork();
    if (child == 0) record_for_ever(path, progress);
    // The last round lives long enough for records that must not be missing.
    uint32_t lifetime_ms = round == 5 ? 1000 + kAllowedSeconds * 1000 : 150 + random() % 900;
    usleep(lifetime_ms * 1000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);

    EXPECT_EQ(query_one(path, "PRAGMA integrity_check"), "ok");
    EXPECT_EQ(query_one(path, "SELECT status FROM run"), "running");
    int64_t rows = query_number(path, "SELECT count(*) FROM access");
    EXPECT_EQ(rows, query_number(path, "SELECT coalesce(sum(count), 0) FROM access_count"));
    EXPECT_GE(rows, static_cast<int64_t>(progress->old_enough.load()));
    if (round == 5) {
      EXPECT_GT(progress->old_enough.load(), 0u);
    }
    EXPECT_EQ(query_number(path,
                           "SELECT count(*) FROM access a LEFT JOIN thread t ON t.id = a.thread_id "
                           "LEFT JOIN site s ON s.id = a.site_id LEFT JOIN class c ON c.id = a.class_id "
                           "LEFT JOIN field f ON f.id = a.field_id "
                           "WHERE t.id IS NULL OR s.id IS NULL OR c.id IS NULL OR (part = 'field' AND a.field_id IS "
                           "NOT NULL AND f.id IS NULL)"),
              0);
    EXPECT_EQ(
        query_number(path,
                     "SELECT count(*) FROM class c LEFT JOIN class s ON s.id = c.super_id WHERE c.super_id IS NOT NULL "
                     "AND s.id IS NULL"),
        0);
    EXPECT_EQ(
        query_number(path, "SELECT count(*) FROM field f LEFT JOIN class c ON c.id = f.class_id WHERE c.id IS NULL"),
        0);
    munmap(memory, 4096);
  }
}

}  // namespace
}  // namespace classaccess
