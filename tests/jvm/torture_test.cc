// Random programs give the same result traced and untraced (issue 4, test 7): java-harness/torture.
//
// CLASSACCESS_TORTURE_SEED repeats a run, CLASSACCESS_TORTURE_SECONDS (scripts/nightly) makes each cell go on
// with new seeds for so long.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <ostream>
#include <random>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

struct TortureCell {
  Jdk jdk;
  const char* name;
  std::vector<std::string> flags;
  const char* agent_options;
  int pause_ms;  // between System.gc(); 0: none
};

std::ostream& operator<<(std::ostream& out, const TortureCell& cell) { return out << cell.jdk << " " << cell.name; }

std::vector<TortureCell> cells() {
  std::vector<TortureCell> all;
  // Half of them by default: each collector with one JDK.
  const bool full = full_run() || std::getenv("CLASSACCESS_TORTURE_SECONDS") != nullptr;
  bool first = true;
  for (const Jdk& jdk : installed_jdks()) {
    const size_t before = all.size();
    all.push_back(
        {jdk,
         "g1_concurrent",
         {"-XX:+UseG1GC", "-Xmn4m", "-XX:InitiatingHeapOccupancyPercent=0", "-XX:+ExplicitGCInvokesConcurrent"},
         "",
         20});
    all.push_back({jdk, "parallel_heap_based", {"-XX:+UseParallelGC", "-Xmn3m", "-XX:HeapBaseMinAddress=40g"}, "", 60});
    all.push_back({jdk, "serial_no_stack_traces", {"-XX:+UseSerialGC", "-XX:+OmitStackTraceInFastThrow"}, "", 0});
    all.push_back({jdk, "shenandoah", {"-XX:+UseShenandoahGC"}, "", 20});
    if (!full) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(before);
      if (first) {
        all.erase(from + 1, from + 3);  // g1, shenandoah
      } else {
        all.erase(from + 3);
        all.erase(from);  // parallel, serial
      }
    }
    first = false;
  }
  return all;
}

uint64_t first_seed() {
  const char* given = std::getenv("CLASSACCESS_TORTURE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}() % 1000000;
}

class Torture : public JavaTest, public ::testing::WithParamInterface<TortureCell> {
 protected:
  bool hs_err_written() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      if (entry.path().filename().string().rfind("hs_err", 0) == 0) return true;
    }
    return false;
  }
  JavaRun program(uint64_t seed, int rounds) const {
    const TortureCell& cell = GetParam();
    // Compiled early and often, in a code cache that is too small for it.
    std::vector<std::string> flags = {"-Xmx64m",
                                      "-Xss512k",
                                      "-XX:ReservedCodeCacheSize=3m",
                                      "-XX:+UseCodeCacheFlushing",
                                      "-XX:Tier3InvocationThreshold=50",
                                      "-XX:Tier3MinInvocationThreshold=20",
                                      "-XX:Tier3CompileThreshold=100",
                                      "-XX:Tier4InvocationThreshold=300",
                                      "-XX:Tier4MinInvocationThreshold=100",
                                      "-XX:Tier4CompileThreshold=600",
                                      "-XX:Tier3BackEdgeThreshold=500",
                                      "-XX:Tier4BackEdgeThreshold=2000"};
    flags.insert(flags.end(), cell.flags.begin(), cell.flags.end());
    bool messages = flags.back() != "-XX:+OmitStackTraceInFastThrow";
    if (messages) flags.push_back("-XX:-OmitStackTraceInFastThrow");
    return JavaRun{cell.jdk,
                   flags,
                   std::string("classes=torture.Unit+,events=off,out=") + path("run.db") + cell.agent_options,
                   {"torture.Torture", std::to_string(seed), "16", std::to_string(rounds),
                    std::to_string(cell.pause_ms), messages ? "messages" : "silent"},
                   "",
                   600};
  }
};

TEST_P(Torture, SameAsUntraced) {
  const char* given = std::getenv("CLASSACCESS_TORTURE_SECONDS");
  const double seconds = given != nullptr ? std::atof(given) : 0;
  const int rounds = seconds > 0 ? 8 : 1;
  const double begin = monotonic_seconds();
  uint64_t seed = first_seed();
  do {
    const std::string again = std::string(rounds > 1   ? "CLASSACCESS_TORTURE_SECONDS=1 "
                                          : full_run() ? "CLASSACCESS_FULL=1 "
                                                       : "") +
                              "CLASSACCESS_TORTURE_SEED=" + std::to_string(seed) + " " +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              " --gtest_filter=Cells/Torture.*" + GetParam().jdk.name + "_" + GetParam().name;
    SCOPED_TRACE("again, with this seed: " + again);
    std::cout << again << std::endl;
    JavaRun traced = program(seed, rounds);
    ProcessResult expected = run_untraced(traced);
    ProcessResult result = run(traced);
    expect_done(result);
    EXPECT_FALSE(hs_err_written());
    EXPECT_GT(check_value(expected.out, "faults"), 100);
    EXPECT_EQ(result.out, expected.out);
    if (HasFailure()) return;
    Database db(path("run.db"), true);
    EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
    EXPECT_EQ(db.diagnostic("dropped"), 0);
    EXPECT_GT(db.diagnostic("probed"), 10000) << "nothing was tortured";
    for (const auto& file : {"run.db", "run.db-wal", "run.db-shm"}) std::filesystem::remove(path(file));
    ++seed;
  } while (monotonic_seconds() - begin < seconds);
}

INSTANTIATE_TEST_SUITE_P(Cells, Torture, ::testing::ValuesIn(cells()),
                         [](const auto& param) { return param.param.jdk.name + "_" + param.param.name; });

}  // namespace
}  // namespace classaccess
