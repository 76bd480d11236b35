// calls=: methods of every kind are timed, each call once, and the program does what it does without us.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

constexpr char kCalls[] = "calls=calls.Timed.*,calls.Timed$*.*,java.util.zip.Deflater.deflateBytesBytes";

struct CallRun {
  Jdk jdk;
  Execution execution;
  std::string options;  // of the agent, before calls=
  std::string name;
};

std::map<std::string, int64_t> counts(const std::string& out, const std::string& prefix) {
  std::map<std::string, int64_t> numbers;
  for (const std::string& line : lines_with(out, prefix)) {
    const size_t equals = line.rfind('=');
    numbers[line.substr(0, equals)] = std::strtoll(line.c_str() + equals + 1, nullptr, 10);
  }
  return numbers;
}

class Calls : public JavaTest, public ::testing::WithParamInterface<CallRun> {
 protected:
  static int virtual_threads() { return GetParam().jdk.major < 21 ? 0 : full_run() ? 10000 : 2000; }
  JavaRun timed(const std::string& options) const {
    std::vector<std::string> flags = execution_flags(GetParam().execution);
    flags.insert(flags.end(), {"-Xmx256m", "-Xverify:all", "-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable",
                               "-Xlog:all=error:stderr"});
    return {GetParam().jdk,
            flags,
            options + kCalls + ",out=" + path("run.db"),
            {"calls.Timed", std::to_string(virtual_threads())},
            ""};
  }
};

TEST_P(Calls, EachCallOnce) {
  JavaRun traced = timed(GetParam().options + "events=all,");
  ProcessResult expected = run_untraced(traced);
  ProcessResult result = run(traced);
  expect_done(result);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(check_value(result.out, "sum"), check_value(expected.out, "sum"));
  if (HasFailure()) return;

  Database db(path("run.db"), true);
  std::map<std::string, int64_t> times = counts(result.out, "EXPECT "), thrown = counts(result.out, "THROWN ");
  EXPECT_GE(times.size(), 15u);
  for (auto [name, count] : times) {
    // Compiled code goes on in the interpreter when the exception comes, so that a call whose handler found no stack
    // cannot be told by where the stack is: one in each overflow may not end (agent/doc/reference.md).
    if (name == "calls.Timed.deep") {
      const int64_t recorded = db.integer("SELECT calls FROM v_call WHERE function = 'calls.Timed.deep'");
      EXPECT_LE(recorded, count);
      EXPECT_GE(recorded, count - 3);
      continue;
    }
    EXPECT_EQ(db.integer("SELECT calls FROM v_call WHERE function = '" + name + "'"), count) << name;
    EXPECT_EQ(
        db.integer("SELECT sum(h.count) FROM call_histogram h JOIN function f ON f.id = function_id WHERE name = '" +
                   name + "'"),
        count)
        << name;
    EXPECT_EQ(db.integer("SELECT count(*) FROM call c JOIN function f ON f.id = function_id WHERE ended_by <> 'return' "
                         "AND name = '" +
                         name + "'"),
              thrown[name])
        << name;
  }
  EXPECT_EQ(db.integer("SELECT count(*) FROM call"), db.integer("SELECT sum(count) FROM call_stat"));
  EXPECT_EQ(
      db.integer("SELECT count(*) FROM call WHERE end_ns < start_ns OR self_ns < 0 OR self_ns > end_ns - start_ns"), 0);
  EXPECT_EQ(db.integer("SELECT count(*) FROM call_stat WHERE self_ns > total_ns OR min_ns > max_ns"), 0);
  EXPECT_EQ(db.integer(
                "SELECT count(*) FROM call c LEFT JOIN call p ON p.seq = c.parent_seq WHERE c.parent_seq IS NOT "
                "NULL AND (p.seq IS NULL OR p.thread_id <> c.thread_id OR p.depth + 1 <> c.depth) AND c.function_id <> "
                "(SELECT id FROM function WHERE name = 'calls.Timed.deep')"),
            0);
  EXPECT_EQ(db.integer("SELECT count(*) FROM call c LEFT JOIN thread t ON t.id = thread_id WHERE t.id IS NULL"), 0);
  for (const char* counter : {"dropped", "call_rows_dropped", "call_threads_full", "call_busy", "call_memory_full"}) {
    EXPECT_EQ(db.diagnostic(counter), 0) << counter;
  }
  EXPECT_GT(db.diagnostic("call_java_cost"), 0);
  if (virtual_threads() > 0) {
    EXPECT_EQ(db.integer("SELECT count(DISTINCT thread_id) FROM call_stat s JOIN function f ON f.id = function_id JOIN "
                         "thread t ON t.id = thread_id WHERE f.name = 'calls.Timed.asleep' AND t.kind = 'virtual'"),
              virtual_threads());
  }
}

std::vector<CallRun> call_runs() {
  std::vector<CallRun> runs;
  const std::pair<Execution, const char*> executions[] = {
      {Execution::kInterpreted, "xint"}, {Execution::kC1, "c1"}, {Execution::kC2, "c2"}};
  for (const Jdk& jdk : installed_jdks()) {
    for (const auto& [execution, name] : executions) {
      runs.push_back({jdk, execution, "mode=off,", jdk.name + "_" + name + "_off"});
    }
    runs.push_back({jdk, Execution::kDefault, "classes=calls.Timed+,", jdk.name + "_default_access"});
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(Runs, Calls, ::testing::ValuesIn(call_runs()),
                         [](const auto& param) { return param.param.name; });

class CallsOfJdk : public JavaTest, public ::testing::WithParamInterface<Jdk> {};

// Some ten thousand methods of the JDK and of javac are changed, verified, and do what they did.
TEST_P(CallsOfJdk, JavacMakesTheSameClasses) {
  const std::string tool = harness_classes();
  auto compile = [&](const std::string& name, const std::string& options) {
    JavaRun run{
        GetParam(),
        {"-Xmx256m", "-Xverify:all"},
        options,
        {"com.sun.tools.javac.Main", "-d", path(name), std::string(CLASSACCESS_HARNESS_SOURCES) + "/JavacInput.java"},
        ""};
    if (options.empty()) run.agent_options.reset();
    return this->run(run);
  };
  expect_status(compile("plain", ""), 0);
  ProcessResult result = compile(
      "timed", "mode=off,events=off,calls=com.sun.tools.**.*,java.**.*,jdk.internal.**.*,out=" + path("run.db"));
  expect_status(result, 0);
  EXPECT_EQ(run(ProcessSpec{{"diff", "-r", path("plain"), path("timed")}, ""}).out, "");
  if (HasFailure()) return;
  Database db(path("run.db"), true);
  EXPECT_GT(db.integer("SELECT count(*) FROM v_call WHERE calls > 0"), 5000);
  EXPECT_GT(db.integer("SELECT sum(calls) FROM v_call WHERE function LIKE 'com.sun.tools.javac.%'"), 100000);
  EXPECT_EQ(db.integer("SELECT count(*) FROM call_stat WHERE self_ns > total_ns"), 0);
  // Why a method is not timed is one of few reasons.
  EXPECT_EQ(
      db.text("SELECT group_concat(DISTINCT refused) FROM function WHERE refused IS NOT NULL AND refused NOT LIKE "
              "'%@IntrinsicCandidate%' AND refused NOT LIKE 'a native method of a class that was loaded already'"),
      "");
}

INSTANTIATE_TEST_SUITE_P(Jdks, CallsOfJdk, ::testing::ValuesIn(installed_jdks()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
