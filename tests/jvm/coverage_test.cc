// Every way that Java code has to reach the heap: what a program that counts them did against what was recorded.
#include "tests/jvm/coverage.h"

#include <gtest/gtest.h>

#include <iostream>

#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

const char kCoveredClasses[] =
    "classes=\"covered.**,covered.Held$O[],java.lang.Object[],boolean[],byte[],char[],short[],int[],long[],float[],"
    "double[]\"";

struct CoverageMode {
  Mode mode;
  std::vector<std::string> groups;
  bool all_threads = false;  // else only the measured ones

  std::string name() const {
    std::string text = mode.name();
    for (const std::string& group : groups) text += "_" + group;
    return text + (all_threads ? "_all" : "");
  }
};

std::ostream& operator<<(std::ostream& out, const CoverageMode& mode) { return out << mode.name(); }

std::vector<CoverageMode> coverage_modes() {
  std::vector<CoverageMode> modes;
  for (const Jdk& jdk : installed_jdks()) {
    bool oldest = jdk.home == oldest_jdk().home;
    for (Execution execution : {Execution::kInterpreted, Execution::kC1, Execution::kC2}) {
      for (Collector collector : {Collector::kG1, Collector::kSerial}) {
        if (!full_run() && (collector == Collector::kG1) != oldest) continue;
        auto add = [&](std::vector<std::string> groups) {
          modes.push_back({Mode{jdk, execution, collector, true, false, 1}, std::move(groups)});
        };
        add({"basic"});
        add({"native", "arrays", "text", "objects"});
        // CI runs each of these in each execution mode, on one JDK.
        bool first = (execution == Execution::kC1) != oldest;
        if (full_run() || first) add({"varhandle"});
        if (full_run() || !first) add({"unsafe", "sun"});
      }
    }
  }
  return modes;
}

class Coverage : public JavaTest, public ::testing::WithParamInterface<CoverageMode> {
 protected:
  // Each access is a method handle that is a constant.
  bool by_handles() const { return GetParam().groups[0] != "native"; }

  std::vector<std::string> flags() const {
    const Mode& mode = GetParam().mode;
    std::vector<std::string> flags = {"--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
                                      "--enable-native-access=ALL-UNNAMED",
                                      "-Dharness.native=" CLASSACCESS_HARNESS_NATIVE};
    if (mode.jdk.major >= 24) flags.push_back("--sun-misc-unsafe-memory-access=allow");
    if (mode.execution == Execution::kInterpreted) {
      flags.push_back("-Xint");
    } else {
      flags.push_back(mode.execution == Execution::kC1 ? "-XX:TieredStopAtLevel=1" : "-XX:-TieredCompilation");
      // With -Xcomp no method handle is inlined: call sites must have been run before.
      if (by_handles()) {
        flags.insert(flags.end(), {"-Xbatch", "-XX:CompileThresholdScaling=0.01"});
      } else {
        flags.push_back("-Xcomp");
      }
      for (const char* flag : {"-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,cover.*::*",
                               "-XX:CompileCommand=compileonly,java.lang.String*::*",
                               "-XX:CompileCommand=compileonly,java.lang.AbstractStringBuilder::*",
                               "-XX:CompileCommand=compileonly,java.util.Arrays*::*",
                               "-XX:CompileCommand=compileonly,java.util.DualPivotQuicksort*::*",
                               "-XX:CompileCommand=compileonly,jdk.internal.util.ArraysSupport::*",
                               "-XX:CompileCommand=dontinline,cover.One::once",
                               "-XX:CompileCommand=dontinline,cover.ObjectPaths::lockOnce"}) {
        flags.push_back(flag);
      }
    }
    for (const std::string& flag : collector_flags(mode.collector)) flags.push_back(flag);
    flags.push_back("-Xmx256m");
    return flags;
  }
};

TEST_P(Coverage, EveryPathIsRecorded) {
  const Mode& mode = GetParam().mode;
  if (!jdk_accepts(mode.jdk, flags())) GTEST_SKIP() << mode.jdk.home << " does not take " << mode.name();
  JavaRun java{mode.jdk, flags(), std::nullopt, {"cover.Coverage"}, "", 300};
  java.program.push_back(mode.execution == Execution::kInterpreted ? "interpreted" : "compiled");
  java.program.push_back(full_run() ? "0" : "5");
  java.program.insert(java.program.end(), GetParam().groups.begin(), GetParam().groups.end());
  ProcessResult told = run(java);
  expect_done(told);
  java.agent_options = std::string(kCoveredClasses) + ",events=all,out=" + path("run.db") +
                       (GetParam().all_threads ? "" : ",threads=*/*");
  ProcessResult result = run(java);
  expect_done(result);
  if (HasFailure()) return;
  EXPECT_EQ(result.out, told.out) << "the program computed something else";
  EXPECT_EQ(result.err, told.err);
  Database db(path("run.db"), true);
  ASSERT_TRUE(db.is_open()) << db.error();
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  std::vector<CoverageLine> lines = parse_coverage(told.out);
  ASSERT_GT(lines.size(), 50u);
  RecordedPaths recorded = read_paths(db);
  expect_coverage(lines, recorded, std::cout);
  // The mode did what its name says. Reflection is not inlined, and C1 calls the VM for some atomics.
  if (mode.execution == Execution::kInterpreted || !by_handles()) return;
  int64_t compiled = 0;
  for (const auto& [path, count] : recorded.compiled) compiled += count;
  int64_t all = recorded.total();
  std::cout << "compiled: " << compiled << " of " << all << "\n";
  EXPECT_GT(compiled * 3, all);
}

INSTANTIATE_TEST_SUITE_P(Modes, Coverage, ::testing::ValuesIn(coverage_modes()),
                         [](const auto& param) { return param.param.name(); });

}  // namespace
}  // namespace classaccess
