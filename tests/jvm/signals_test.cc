// Beside other people's signal handlers, profilers and refused system calls (issue 3): the
// program does what it does without us, and the counts are exact.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <map>

#include "tests/jvm/database.h"
#include "tests/jvm/expectations.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

using Words = std::vector<std::string>;

class Signals : public CountsTest {
 protected:
  ProcessResult run_with(const Words& prefix, const JavaRun& java) {
    ProcessSpec process = spec(java);
    process.command.insert(process.command.begin(), prefix.begin(), prefix.end());
    return run(process);
  }

  // Runs natives.Handlers without and with the agent. Both must print the same, and the counted
  // field's loads and stores be what was printed. Leaves the recording in out.db.
  ProcessResult expect_handlers(const Jdk& jdk, const Words& arguments, const Words& flags = {},
                                const std::string& options = "", const Words& prefix = {}) {
    JavaRun java{jdk, flags, {}, {"natives.Handlers", CLASSACCESS_NATIVES}, "", 120};
    java.flags.push_back("-Xmx64m");
    java.flags.push_back("-XX:+UseSerialGC");
    java.program.insert(java.program.end(), arguments.begin(), arguments.end());
    ProcessResult plain = run_with(prefix, java);
    expect_done(plain);
    java.agent_options = "classes=natives.Handlers$Cell,out=out.db,overwrite=on" + options;
    ProcessResult traced = run_with(prefix, java);
    expect_done(traced);
    EXPECT_EQ(traced.out, plain.out) << traced.err;
    if (HasFailure()) return traced;
    int64_t rounds = check_value(traced.out, "rounds");
    int64_t own = check_value(traced.out, "own_stores") == 2 ? 2 : 0;
    Database db(path("out.db"), true);
    db.expect_whole();
    auto sum = [&](const char* op) {
      return db.integer(
          "SELECT sum(a.count) FROM access_count a JOIN field f ON f.id = a.field_id WHERE f.name = "
          "'value' AND a.op = '" +
          std::string(op) + "'");
    };
    EXPECT_GT(rounds, 0);
    EXPECT_EQ(sum("load"), rounds + own) << jdk;
    EXPECT_EQ(sum("store"), rounds + own) << jdk;
    EXPECT_EQ(db.diagnostic("dropped"), 0);
    return traced;
  }

  int64_t diagnostic(const std::string& name) { return Database(path("out.db"), true).diagnostic(name); }

  void expect_one_message(const ProcessResult& result, const std::string& words) {
    Words said = lines_with(result.err, "classaccess: ");
    ASSERT_EQ(said.size(), 1u) << result.err;
    EXPECT_NE(said[0].find(words), std::string::npos) << said[0];
  }

  // Compares a recording of counts.ExactCounts with what it says it does, where the count is exact.
  void expect_exact(const std::vector<Expectation>& expectations, bool interpreted, const std::string& thread = "") {
    Database db(path("out.db"), true);
    db.expect_whole();
    EXPECT_EQ(db.diagnostic("dropped"), 0);
    Counts counts = read_counts(db);
    int compared = 0;
    for (const Expectation& e : expectations) {
      bool exact = interpreted || (e.kind == "volatile" && e.part != "length");
      if (!exact || (!thread.empty() && e.thread.rfind(thread, 0) != 0)) continue;
      EXPECT_EQ(counts.of(e), e.count) << e.key();
      compared++;
    }
    EXPECT_GT(compared, 50);
  }

  std::vector<Expectation> told(const JavaRun& java) { return parse_expectations(run_untraced(java).out); }
};

const Words kEverything = {"sigaction", "probe", "blocked",   "attached=0", "attached=2048", "attached=-1",
                           "signal",    "stack", "sigaction", "reporter",   "probe"};

TEST_F(Signals, ALaterHandlerBySigactionIsPutBehindOurs) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    ProcessResult result = expect_handlers(jdk, kEverything);
    expect_one_message(result, "another SIGSEGV handler (" CLASSACCESS_NATIVES ")");
    EXPECT_GE(diagnostic("handlers_behind"), 10);
    EXPECT_EQ(diagnostic("handlers_replaced"), 0);
  }
}

TEST_F(Signals, ALaterHandlerBySigactionIsPutBehindOursWithMprotect) {
  expect_handlers(oldest_jdk(), kEverything, {}, ",protect=mprotect");
}

TEST_F(Signals, ALaterHandlerByTheSystemCallIsNoticed) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    ProcessResult result = expect_handlers(jdk, {"raw", "probe", "stack", "raw", "raw"});
    expect_one_message(result, "another SIGSEGV handler (" CLASSACCESS_NATIVES ") was found in front of ours");
    EXPECT_EQ(diagnostic("handlers_replaced"), 3);
  }
}

TEST_F(Signals, UnderLibjsig) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    // Not `signal` and `reporter`: without us they see HotSpot's own faults there.
    expect_handlers(jdk, {"sigaction", "blocked", "attached=0"}, {}, "",
                    {"/usr/bin/env", "LD_PRELOAD=" + jdk.home + "/lib/libjsig.so"});
  }
}

// HotSpot looks at the signal handlers every 10 s and sees its own.
TEST_F(Signals, UnderCheckedJni) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    bool wait = full_run() || jdk.home == oldest_jdk().home;
    ProcessResult result = expect_handlers(
        jdk, {"blocked", "attached=0", "criticals=file", wait ? "sleep=11000" : "sleep=1"}, {"-Xcheck:jni"});
    EXPECT_EQ(check_value(result.out, "criticals"), 0);
    EXPECT_EQ(result.out.find("handler modified"), std::string::npos) << result.out;
  }
}

TEST_F(Signals, CriticalArraysKeepTheirPromises) {
  for (const char* options : {"", ",protect=mprotect", ",twin=off"}) {
    for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
      ProcessResult result = expect_handlers(jdk, {"criticals=file"}, {}, options);
      EXPECT_EQ(check_value(result.out, "criticals"), 0);
    }
  }
}

TEST_F(Signals, AProfilerAtAThousandHertz) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    bool interpreted = jdk.name == oldest_jdk().name;
    JavaRun java{jdk, execution_flags(interpreted ? Execution::kInterpreted : Execution::kC2),
                 {},  {"counts.ExactCounts", "4", "2", "0"},
                 "",  180};
    java.flags.push_back("-XX:+UseSerialGC");
    std::vector<Expectation> expectations = told(java);
    java.program.push_back("silent");
    java.flags.push_back("-agentpath:" CLASSACCESS_PROFILER);
    java.agent_options = "classes=held.**,int[],long[],out=out.db,overwrite=on";
    ProcessResult result = run(java);
    expect_done(result);
    if (HasFailure()) return;
    EXPECT_GT(check_value(result.err, "signals"), 300) << result.err;
    EXPECT_GT(check_value(result.err, "java"), 100) << result.err;
    EXPECT_GT(check_value(result.err, "stacks"), 10) << result.err;
    std::vector<Expectation> fields;
    for (const Expectation& e : expectations) {
      if (!e.element() && e.part != "length") fields.push_back(e);
    }
    expect_exact(fields, interpreted);
  }
}

TEST_F(Signals, BesideFlightRecorder) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    JavaRun java{jdk, {"-XX:+UseSerialGC"}, {}, {"counts.ExactCounts", "4", "2", "0"}, "", 180};
    std::vector<Expectation> expectations = told(java);
    java.program.push_back("silent");
    java.flags.push_back("-XX:StartFlightRecording=filename=run.jfr,settings=profile");
    // JFR's own start is a million accesses of thread main.
    java.agent_options = "classes=held.**,threads=worker-*,out=out.db,overwrite=on";
    ProcessResult result = run(java);
    expect_done(result);
    if (HasFailure()) return;
    EXPECT_TRUE(file_exists(path("run.jfr"))) << result.out << result.err;
    expect_exact(expectations, false, "worker-");
  }
}

// ---- What is refused ----

struct Refusal {
  const char* name;
  Words prefix;
  const char* message;
  const char* protection;
};

class RefusedKeys : public Signals, public ::testing::WithParamInterface<Refusal> {};

TEST_P(RefusedKeys, OneMessageAndExactCounts) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    JavaRun java{jdk, {"-Xint", "-XX:+UseSerialGC", "-Xmx64m"}, {}, {"counts.ExactCounts", "2", "1", "0"}, "", 180};
    std::vector<Expectation> expectations = told(java);
    java.program.push_back("silent");
    java.agent_options = "classes=held.**,out=out.db,overwrite=on";
    ProcessResult result = run_with(GetParam().prefix, java);
    if (result.status == 3) GTEST_SKIP() << result.err;
    expect_done(result);
    expect_one_message(result, GetParam().message);
    if (HasFailure()) return;
    std::vector<Expectation> fields;
    for (const Expectation& e : expectations) {
      if (!e.element() && e.part != "length") fields.push_back(e);
    }
    expect_exact(fields, true);
    EXPECT_EQ(Database(path("out.db"), true).text("SELECT protection FROM run"), GetParam().protection);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, RefusedKeys,
    ::testing::Values(Refusal{"KeysTaken",
                              {"/usr/bin/env", "LD_PRELOAD=" CLASSACCESS_TAKE_ALL_KEYS},
                              "all 15 protection keys of this process are taken; using protect=mprotect",
                              "mprotect"},
                      Refusal{"KeysNotPermitted",
                              {CLASSACCESS_REFUSE_SYSCALLS, "pkey_alloc:EPERM"},
                              "pkey_alloc is not permitted",
                              "mprotect"},
                      Refusal{"NoKeysInTheKernel",
                              {CLASSACCESS_REFUSE_SYSCALLS, "pkey_alloc"},
                              "this kernel has no pkey_alloc",
                              "mprotect"}),
    [](const auto& refusal) { return std::string(refusal.param.name); });

}  // namespace
}  // namespace classaccess
