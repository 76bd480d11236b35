// Threads of every kind: whose accesses they are, and that the program ends as it does untraced.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/expectations.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

struct VirtualRun {
  const char* name;
  std::vector<std::string> flags;
  int threads;
  int collections;
};

std::ostream& operator<<(std::ostream& out, const VirtualRun& run) { return out << run.name; }

const std::vector<std::string> kTwoCarriers = {"-Djdk.virtualThreadScheduler.parallelism=2",
                                               "-Djdk.virtualThreadScheduler.maxPoolSize=2", "-Xmx256m"};

class VirtualThreads : public CountsTest, public ::testing::WithParamInterface<VirtualRun> {
 protected:
  JavaRun java(const Jdk& jdk) {
    JavaRun run{jdk, kTwoCarriers, "classes=held.Turns,out=run.db,events=off,overwrite=on", {}, "", 240};
    for (const std::string& flag : GetParam().flags) run.flags.push_back(flag);
    run.program = {"counts.VirtualThreads", std::to_string(GetParam().threads), std::to_string(GetParam().collections)};
    return run;
  }
};

// Each access of a virtual thread has that thread's row, whichever carrier runs it.
TEST_P(VirtualThreads, EachHasItsOwnCounts) {
  bool any = false;
  for (const Jdk& jdk : installed_jdks()) {
    if (jdk.major < 21) continue;
    any = true;
    std::vector<Expectation> expectations = run_counts(java(jdk));
    if (HasFailure()) return;
    ASSERT_EQ(expectations.size(), 2u * static_cast<size_t>(GetParam().threads));
    Database db(path("run.db"), true);
    Counts counts = read_counts(db);
    for (const Expectation& e : expectations) EXPECT_EQ(counts.of(e), e.count) << e.key();
    db.expect_whole();
    EXPECT_EQ(db.integer("SELECT count(*) FROM thread WHERE kind = 'virtual'"), GetParam().threads);
    EXPECT_EQ(db.integer("SELECT count(*) FROM thread WHERE kind = 'carrier'"), 2);
    EXPECT_EQ(db.integer("SELECT count(*) FROM thread v JOIN thread c ON c.id = v.carrier_id AND c.kind = 'carrier' "
                         "WHERE v.kind = 'virtual'"),
              GetParam().threads);
    EXPECT_EQ(db.integer("SELECT count(*) FROM access_count a JOIN thread t ON t.id = a.thread_id JOIN field f ON "
                         "f.id = a.field_id WHERE t.kind = 'carrier'"),
              0)
        << "given to a carrier";
  }
  if (!any) GTEST_SKIP() << "no JDK 21 or newer";
}

INSTANTIATE_TEST_SUITE_P(
    Runs, VirtualThreads,
    ::testing::Values(VirtualRun{"Default_1000", {}, 1000, 10},
                      VirtualRun{"Interpreted_Serial", {"-Xint", "-XX:+UseSerialGC"}, 40, 10},
                      VirtualRun{"Shenandoah", {"-XX:+UseShenandoahGC"}, 60, 10},
                      VirtualRun{"Parallel_oops64", {"-XX:+UseParallelGC", "-XX:-UseCompressedOops"}, 40, 5}),
    [](const auto& param) { return std::string(param.param.name); });

class ThreadsTest : public JavaTest {};

// threads= goes by the virtual thread's own name, not by its carrier's.
TEST_F(ThreadsTest, VirtualThreadsAreChosenByTheirNames) {
  if (newest_jdk().major < 21) GTEST_SKIP() << "no JDK 21 or newer";
  JavaRun java{newest_jdk(), kTwoCarriers, "classes=held.Turns,out=run.db,threads=\"v-1*\"", {}, "", 120};
  java.program = {"counts.VirtualThreads", "30", "2", "silent"};
  expect_done(run(java));
  Database db(path("run.db"), true);
  EXPECT_EQ(db.integer("SELECT count(DISTINCT t.name) FROM access_count a JOIN thread t ON t.id = a.thread_id"), 11);
  EXPECT_EQ(db.integer("SELECT count(*) FROM access_count a JOIN thread t ON t.id = a.thread_id "
                       "WHERE t.name NOT LIKE 'v-1%' OR t.name IS NULL"),
            0);
  // Thread 12 of the program: 3 + 12 % 7 stores, 2 + 12 % 11 loads.
  EXPECT_EQ(db.integer("SELECT sum(a.count) FROM access_count a JOIN thread t ON t.id = a.thread_id "
                       "JOIN field f ON f.id = a.field_id WHERE t.name = 'v-12'"),
            8 + 3);
}

}  // namespace
}  // namespace classaccess
