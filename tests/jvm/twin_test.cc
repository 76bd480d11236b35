// twin=off: accesses by opening the page. Exact where rights are per thread; with mprotect
// windows lose what other threads do, are counted, and change nothing for the program.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/expectations.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct Combination {
  Jdk jdk;
  Collector collector;
  Execution execution;
};

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const Jdk& jdk : installed_jdks()) {
    bool oldest = jdk.home == oldest_jdk().home;
    all.push_back({jdk, oldest ? Collector::kSerial : Collector::kG1, Execution::kInterpreted});
    all.push_back({jdk, oldest ? Collector::kShenandoah : Collector::kParallel, Execution::kC2});
    if (!full_run()) continue;
    for (Collector collector : {Collector::kSerial, Collector::kParallel, Collector::kG1, Collector::kShenandoah}) {
      all.push_back({jdk, collector, Execution::kInterpreted});
    }
  }
  return all;
}

class TwinOff : public CountsTest {
 protected:
  // Both kinds of counts of fields, volatile ones only where code is compiled.
  void compare(const JavaRun& java, const std::string& db_path, bool exact) {
    std::vector<Expectation> expectations = run_counts(java);
    if (HasFailure()) return;
    Database db(db_path, true);
    ASSERT_TRUE(db.is_open()) << db.error();
    Counts counts = read_counts(db);
    bool interpreted = java.flags[0] == "-Xint";
    int64_t done = 0, seen = 0;
    for (const Expectation& e : expectations) {
      if (e.class_name.rfind("held.", 0) != 0 || e.part == "length" || e.element()) continue;
      if (!interpreted && e.kind != "volatile") continue;
      if (exact) {
        EXPECT_EQ(counts.of(e), e.count) << e.key();
      } else {
        EXPECT_LE(counts.of(e), e.count) << e.key();
      }
      done += e.count;
      seen += counts.of(e);
    }
    EXPECT_GT(done, 1000);
    EXPECT_GT(seen, done / 4) << "of " << done;
    std::cout << "recorded " << seen << " of " << done << "\n";
    EXPECT_EQ(db.diagnostic("no_twin"), 1);
    EXPECT_EQ(db.diagnostic("displaced"), 0);
    EXPECT_EQ(db.diagnostic("dropped"), 0);
  }
};

TEST_F(TwinOff, IsExactWithKeys) {
  for (const Combination& c : combinations()) {
    std::vector<std::string> flags = execution_flags(c.execution);
    for (const std::string& flag : collector_flags(c.collector)) flags.push_back(flag);
    flags.push_back("-Xmx64m");
    if (!jdk_accepts(c.jdk, flags)) continue;
    std::string name = c.jdk.name + shell_line(collector_flags(c.collector)) + flags[0];
    SCOPED_TRACE(name);
    std::string db = path(test_name(name) + ".db");
    JavaRun java{c.jdk, flags, "classes=held.**,twin=off,protect=pkey,out=" + db, {"counts.ExactCounts", "4", "2", "0"},
                 "",    120};
    compare(java, db, true);
    if (HasFailure()) return;
    Database recorded(db, true);
    EXPECT_EQ(recorded.diagnostic("windows"), 0) << "a key is opened for one thread only";
    EXPECT_GT(recorded.diagnostic("stepped"), 0);
  }
}

TEST_F(TwinOff, CountsItsWindowsWithMprotect) {
  for (const Jdk& jdk : full_run() ? installed_jdks() : std::vector<Jdk>{newest_jdk()}) {
    SCOPED_TRACE(jdk.name);
    for (const char* threads : {"1", "4"}) {
      std::string db = path(jdk.name + "-" + threads + ".db");
      JavaRun java{jdk,
                   {"-Xint", "-XX:+UseSerialGC", "-Xmx64m"},
                   "classes=held.**,twin=off,protect=mprotect,out=" + db,
                   {"counts.ExactCounts", threads, "1", "0"},
                   "",
                   120};
      compare(java, db, false);
      if (HasFailure()) return;
      Database recorded(db, true);
      EXPECT_GT(recorded.diagnostic("windows"), 1000);
      // Traps of the program's threads outnumber what others lose.
      EXPECT_LT(recorded.diagnostic("unresolved") * 20, recorded.diagnostic("accesses"));
    }
  }
}

TEST_F(TwinOff, CriticalArraysAreCopies) {
  for (const Jdk& jdk : installed_jdks()) {
    JavaRun plain{jdk, {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Critical"}, "", 120};
    ProcessResult told = run(plain);
    expect_done(told);
    for (const char* options : {"twin=on", "twin=off", "twin=off,protect=mprotect"}) {
      if (!full_run() && jdk.home == oldest_jdk().home && std::string(options) != "twin=off") continue;
      SCOPED_TRACE(jdk.name + " " + options);
      std::string db = path(test_name(jdk.name + options) + ".db");
      JavaRun traced = plain;
      traced.agent_options = std::string("classes=byte[],events=off,out=") + db + "," + options;
      ProcessResult result = run(traced);
      expect_done(result);
      EXPECT_EQ(result.out, told.out);
      if (HasFailure()) return;
      Database recorded(db, true);
      EXPECT_GT(recorded.diagnostic("criticals"), 20);
    }
  }
}

class MemfdRefused : public JavaTest {
 protected:
  // Under the filter; status 3 of it: seccomp is not to be had.
  ProcessResult run_refused(const std::string& names, const std::string& options) {
    JavaRun java{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, options, {"Quiet"}, "", 120};
    ProcessSpec refused = spec(java);
    refused.command.insert(refused.command.begin(), {CLASSACCESS_REFUSE_SYSCALLS, names});
    return run(refused);
  }
};

TEST_F(MemfdRefused, AutoOpensPages) {
  for (const std::string names : {"memfd_create", "memfd_create,pkey_alloc"}) {
    std::string db = path(test_name(names) + ".db");
    ProcessResult result = run_refused(names, "out=" + db);
    if (result.status == 3) GTEST_SKIP() << "no seccomp filter can be set: " << result.err;
    expect_status(result, 7);  // Quiet's own
    EXPECT_NE(result.err.find("classaccess: no second view of the heap: memfd_create is refused (Operation not "
                              "permitted); using twin=off\n"),
              std::string::npos)
        << result.err;
    Database recorded(db, true);
    ASSERT_TRUE(recorded.is_open()) << recorded.error();
    EXPECT_EQ(recorded.diagnostic("no_twin"), 1);
    EXPECT_GT(recorded.diagnostic("accesses"), 1000);
    EXPECT_EQ(recorded.diagnostic("windows") > 0, names != "memfd_create");
  }
}

TEST_F(MemfdRefused, OnStopsTheStart) {
  ProcessResult result = run_refused("memfd_create", "twin=on,out=" + path("run.db"));
  if (result.status == 3) GTEST_SKIP() << "no seccomp filter can be set: " << result.err;
  expect_status(result, 1);
  EXPECT_NE(result.err.find("classaccess: option 'twin': memfd_create is refused (Operation not permitted): use `auto` "
                            "or `off`\n"),
            std::string::npos)
      << result.err;
  EXPECT_FALSE(file_exists(path("run.db")));
}

}  // namespace
}  // namespace classaccess
