// Threads of every kind: whose accesses they are, and that the program ends as it does untraced.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>

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

// Ways to end, and threads that native code attaches.
class EndsTest : public JavaTest {
 protected:
  JavaRun ends(const Jdk& jdk, const std::string& what, const std::vector<std::string>& flags = {}) {
    JavaRun java{jdk, flags, std::nullopt, {"ends.Ends", what}, "", 120};
    java.flags.push_back("-Dharness.native=" CLASSACCESS_HARNESS_NATIVE);
    return java;
  }

  static constexpr const char* kAgentOptions = "classes=shapes.Subject,events=off,overwrite=on,out=run.db";

  // Traced and untraced run end alike.
  void expect_alike(const ProcessResult& plain, const ProcessResult& traced) {
    EXPECT_EQ(traced.status, plain.status);
    EXPECT_EQ(traced.signal, plain.signal);
    EXPECT_EQ(traced.out, plain.out);
    EXPECT_EQ(traced.err, plain.err);
  }

  void expect_complete_database() {
    db_.emplace(path("run.db"), true);
    ASSERT_TRUE(db_->is_open()) << db_->error();
    db_->expect_whole();
    EXPECT_EQ(db_->text("SELECT status FROM run"), "complete");
    EXPECT_EQ(db_->diagnostic("dropped"), 0);
    EXPECT_FALSE(file_exists(path("run.db-wal")));
  }

  void run_both(JavaRun java, int status) {
    ProcessResult plain = run(java);
    expect_status(plain, status);
    java.agent_options = kAgentOptions;
    ProcessResult traced = run(java);
    expect_alike(plain, traced);
    expect_complete_database();
  }

  int64_t count(const std::string& field, const std::string& op, const std::string& thread) {
    return db_->integer(
        "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN field f ON f.id = a.field_id "
        "JOIN thread t ON t.id = a.thread_id WHERE f.name = '" +
        field + "' AND a.op = '" + op + "' AND t.name = '" + thread + "'");
  }

  void expect_touched(const std::string& thread, int64_t n, int64_t m) {
    EXPECT_EQ(count("first", "store", thread), n) << thread;
    EXPECT_EQ(count("second", "load", thread), m) << thread;
  }

  // Sends `signal` once the program says it is ready.
  ProcessResult run_and_send(const JavaRun& java, int signal) {
    std::remove(path("stdout").c_str());  // of an earlier run
    ProcessSpec spec = this->spec(java);
    Process process(spec);
    EXPECT_TRUE(wait_until([&] { return read_text(path("stdout")).find("READY") != std::string::npos; }, 60));
    kill(process.pid(), signal);
    return process.wait();
  }

  std::optional<Database> db_;
};

TEST_F(EndsTest, DaemonThreadsAtTheEnd) {
  for (const Jdk& jdk : installed_jdks()) {
    run_both(ends(jdk, "daemon"), 0);
    expect_touched("main", 7, 8);
    EXPECT_GT(count("first", "store", "loop-0") + count("first", "store", "loop-1") + count("first", "store", "loop-2"),
              0);
  }
}

TEST_F(EndsTest, ExitByAWorker) {
  for (const Jdk& jdk : installed_jdks()) {
    run_both(ends(jdk, "exit"), 3);
    expect_touched("ender", 5, 6);
    EXPECT_EQ(db_->integer("SELECT sum(a.count) FROM access_count a JOIN field f ON f.id = a.field_id JOIN thread t ON "
                           "t.id = a.thread_id WHERE f.name = 'first' AND t.name LIKE 'Thread-%'"),
              9)
        << "the shutdown hook is traced to its end";
  }
}

TEST_F(EndsTest, Halt) {
  for (const Jdk& jdk : installed_jdks()) {
    run_both(ends(jdk, "halt"), 4);
    expect_touched("ender", 5, 6);
  }
}

TEST_F(EndsTest, UncaughtExceptions) {
  for (const Jdk& jdk : installed_jdks()) {
    run_both(ends(jdk, "throw"), 1);
    expect_touched("ender", 5, 6);
  }
}

TEST_F(EndsTest, Signals) {
  for (const Jdk& jdk : installed_jdks()) {
    for (int signal : {SIGTERM, SIGINT}) {
      JavaRun java = ends(jdk, "signal");
      ProcessResult plain = run_and_send(java, signal);
      expect_status(plain, 128 + signal);
      java.agent_options = kAgentOptions;
      ProcessResult traced = run_and_send(java, signal);
      expect_alike(plain, traced);
      expect_complete_database();
      expect_touched("main", 7, 8);
    }
  }
}

TEST_F(EndsTest, ProcessNumberOne) {
  const std::vector<std::string> in_namespace = {"/usr/bin/unshare", "-Urpf", "--mount-proc"};
  ProcessSpec probe;
  probe.command = in_namespace;
  probe.command.push_back("/bin/true");
  probe.limit_seconds = 20;
  if (run_process(probe).status != 0) GTEST_SKIP() << shell_line(probe.command) << " is refused here";
  for (const Jdk& jdk : installed_jdks()) {
    JavaRun java = ends(jdk, "exit");
    ProcessSpec alone = spec(java);
    alone.command.insert(alone.command.begin(), in_namespace.begin(), in_namespace.end());
    ProcessResult plain = run(alone);
    expect_status(plain, 3);
    java.agent_options = kAgentOptions;
    alone = spec(java);
    alone.command.insert(alone.command.begin(), in_namespace.begin(), in_namespace.end());
    expect_alike(plain, run(alone));
    expect_complete_database();
    EXPECT_EQ(db_->integer("SELECT pid FROM run"), 1);
    expect_touched("ender", 5, 6);
  }
}

TEST_F(EndsTest, HeapExhausted) {
  for (const Jdk& jdk : installed_jdks()) {
    for (const std::string collector : {"Serial", "Parallel", "G1", "Shenandoah"}) {
      std::vector<std::string> flags = {"-Xmx24m", "-XX:+Use" + collector + "GC"};
      if (collector == "Parallel") flags.push_back("-XX:-UseGCOverheadLimit");
      run_both(ends(jdk, "memory", flags), 1);
      expect_touched("main", 7 + 11, 8 + 12);
    }
    JavaRun java = ends(jdk, "memory", {"-Xmx24m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"});
    ProcessResult plain = run(java);
    expect_status(plain, 3);
    java.agent_options = kAgentOptions;
    expect_alike(plain, run(java));
  }
}

TEST_F(EndsTest, NamesOfVirtualThreads) {
  bool any = false;
  for (const Jdk& jdk : installed_jdks()) {
    if (jdk.major < 21) continue;
    any = true;
    for (const std::string flag : {"-XX:+UseSerialGC", "-XX:-UseCompressedOops", "-XX:-CompactStrings"}) {
      run_both(ends(jdk, "virtual", {flag}), 0);
      EXPECT_EQ(db_->integer("SELECT sum(a.count) FROM access_count a JOIN field f ON f.id = a.field_id JOIN thread t "
                             "ON t.id = a.thread_id WHERE f.name = 'first' AND t.name = '' AND t.kind = 'virtual'"),
                5);
      expect_touched("wörker 日本 😀", 1 + 7, 2 + 8);
      std::string cut;
      for (int i = 0; i < 127; i++) cut += "ä";
      expect_touched(cut, 9, 10);
    }
  }
  if (!any) GTEST_SKIP() << "no JDK 21 or newer";
}

TEST_F(EndsTest, ThreadsAttachedByNativeCode) {
  for (const Jdk& jdk : installed_jdks()) {
    for (const std::string flag : {"-Xint", "-XX:+UseParallelGC"}) {
      run_both(ends(jdk, "attach", {flag}), 0);
      for (int i = 0; i < 4; i++) expect_touched("native-" + std::to_string(i), 2 * (20 + i), 2 * 30);
      EXPECT_EQ(db_->integer("SELECT count(*) FROM thread WHERE name LIKE 'native-%' AND kind = 'platform' AND "
                             "ended_ns > started_ns"),
                8)
          << "each attached twice";
    }
  }
}

}  // namespace
}  // namespace classaccess
