// Exceptions thrown through probed code: all arrive, and their stack traces are those of the untraced run
// (issue 4, test 5): java-harness/torture/Traces.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <set>
#include <sstream>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

struct TracesCell {
  Jdk jdk;
  const char* name;
  std::vector<std::string> flags;
  int times;
  bool traced_always;  // no exception comes without its stack trace
};

std::ostream& operator<<(std::ostream& out, const TracesCell& cell) { return out << cell.jdk << " " << cell.name; }

// 1,000 tries of each kind throw 6,000 NullPointerExceptions.
std::vector<TracesCell> cells() {
  std::vector<TracesCell> all;
  const char* const no_omit = "-XX:-OmitStackTraceInFastThrow";
  bool first = true;
  for (const Jdk& jdk : installed_jdks()) {
    if (first || full_run()) all.push_back({jdk, "interpreted", {"-Xint"}, 1000, true});
    if (!first || full_run()) all.push_back({jdk, "c1", {"-XX:TieredStopAtLevel=1"}, 1000, true});
    all.push_back({jdk, "compiled", {no_omit}, 1000, true});
    if (first || full_run()) all.push_back({jdk, "fast_throw", {"-XX:+OmitStackTraceInFastThrow"}, 1000, false});
    if (!first || full_run()) {
      // Null as a compressed oop leads to the page in front of the heap, which had a twin that could be read.
      all.push_back({jdk, "heap_based", {no_omit, "-XX:HeapBaseMinAddress=40g"}, 1000, true});
    }
    if (full_run()) all.push_back({jdk, "wide_oops", {no_omit, "-XX:-UseCompressedOops"}, 1000, true});
    first = false;
  }
  return all;
}

class Traces : public JavaTest, public ::testing::WithParamInterface<TracesCell> {
 protected:
  // Untraced, then traced: the same output. If exceptions may come without their stack trace, which do depends
  // on when code is compiled; each that the traced run has is one of the untraced run, where none is left out.
  void expect_same(const JavaRun& traced, bool traced_always = true) {
    JavaRun plain = traced;
    if (!traced_always) plain.flags.push_back("-XX:-OmitStackTraceInFastThrow");
    ProcessResult expected = run_untraced(plain);
    result_ = run(traced);
    expect_done(result_);
    EXPECT_EQ(check_value(result_.out, "held"), 0);
    EXPECT_EQ(check_value(result_.out, "exceptions"), check_value(expected.out, "exceptions"));
    if (traced_always) {
      EXPECT_EQ(result_.out, expected.out);
    } else {
      std::set<std::string> known = traces(expected.out);
      std::set<std::string> seen = traces(result_.out);
      EXPECT_GT(seen.size(), 3u);
      for (const std::string& trace : seen) EXPECT_EQ(known.count(trace), 1u) << trace;
    }
  }
  // One stack trace each, without how often it came.
  static std::set<std::string> traces(const std::string& out) {
    std::set<std::string> all;
    std::string trace, line;
    std::istringstream lines(out);
    while (std::getline(lines, line)) {
      if (line.rfind("\tat ", 0) != 0) {
        if (!trace.empty()) all.insert(trace);
        trace.clear();
        if (line.rfind("CHECK ", 0) == 0 || line == "DONE") continue;
        const size_t times = line.find(" times ");
        if (times != std::string::npos) line.erase(0, times + 7);
      }
      trace += line + "\n";
    }
    return all;
  }
  std::string agent_options() const { return "classes=torture.Traces$Node+,events=off,out=" + path("run.db"); }

  ProcessResult result_;
};

TEST_P(Traces, OfEveryKindAreThoseOfTheUntracedRun) {
  const TracesCell& cell = GetParam();
  std::vector<std::string> flags = {"-Xmx64m",
                                    "-Xss400k",
                                    "-XX:Tier3InvocationThreshold=20",
                                    "-XX:Tier3MinInvocationThreshold=10",
                                    "-XX:Tier3CompileThreshold=50",
                                    "-XX:Tier4InvocationThreshold=100",
                                    "-XX:Tier4MinInvocationThreshold=50",
                                    "-XX:Tier4CompileThreshold=200"};
  flags.insert(flags.end(), cell.flags.begin(), cell.flags.end());
  expect_same({cell.jdk, flags, agent_options(), {"torture.Traces", "kinds", std::to_string(cell.times)}, "", 300},
              cell.traced_always);
  if (HasFailure()) return;
  EXPECT_GT(check_value(result_.out, "exceptions"), cell.times * 9);
  if (cell.traced_always) {
    EXPECT_EQ(check_value(result_.out, "different"), 17);
  }
  Database db(path("run.db"), true);
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  // Those that start as a fault in Java code: the sites were probed, and HotSpot got the faults.
  EXPECT_GT(db.diagnostic("probed"), cell.times * 10);
  EXPECT_GT(db.diagnostic("chained"), cell.name == std::string("fast_throw") ? 100 : cell.times);
}

INSTANTIATE_TEST_SUITE_P(Cells, Traces, ::testing::ValuesIn(cells()),
                         [](const auto& param) { return param.param.jdk.name + "_" + param.param.name; });

class TracesOfOneSite : public Traces {};

// The compiled code stays what it is: each null is a fault at the same instruction, from where the interpreter
// goes on and throws.
TEST_P(TracesOfOneSite, AreThoseOfTheUntracedRun) {
  const TracesCell& cell = GetParam();
  const std::vector<std::string> flags = {"-Xmx64m",
                                          "-Xbatch",
                                          "-XX:-OmitStackTraceInFastThrow",
                                          "-XX:PerBytecodeTrapLimit=2000000000",
                                          "-XX:PerMethodTrapLimit=2000000000",
                                          "-XX:CompileCommand=quiet",
                                          "-XX:CompileCommand=dontinline,torture.Traces::tryOne"};
  expect_same({cell.jdk,
               flags,
               agent_options(),
               {"torture.Traces", "site", std::to_string(cell.times), full_run() ? "16" : "1"},
               "",
               1500});
  if (HasFailure()) return;
  EXPECT_EQ(check_value(result_.out, "exceptions"), cell.times);
  EXPECT_EQ(check_value(result_.out, "different"), 1);
  Database db(path("run.db"), true);
  // Once in the compiled code, once in the interpreter.
  EXPECT_GE(db.diagnostic("chained"), 2 * cell.times);
  EXPECT_GE(db.integer("SELECT ifnull(sum(count), 0) FROM access_count JOIN site ON site.id = site_id WHERE site.kind "
                       "= 'c2' AND site.method IN ('torture.Traces.load', 'torture.Traces.tryOne')"),
            cell.times)
      << "between two nulls the same code loads a value";
  EXPECT_GT(db.diagnostic("probes_laid"), 100);
  EXPECT_LT(db.integer("SELECT ifnull(sum(value), 0) FROM diagnostic WHERE name LIKE 'traps\\_%' ESCAPE '\\' AND name "
                       "<> 'traps_native'"),
            cell.times * 20)
      << "not probed";
}

std::vector<TracesCell> sites() {
  std::vector<TracesCell> all;
  for (const Jdk& jdk : installed_jdks()) all.push_back({jdk, "c2", {}, full_run() ? 1000000 : 20000, true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cells, TracesOfOneSite, ::testing::ValuesIn(sites()),
                         [](const auto& param) { return param.param.jdk.name; });

}  // namespace
}  // namespace classaccess
