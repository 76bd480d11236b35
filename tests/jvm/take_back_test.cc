// All probes taken back and laid again while the program runs (issue 4, test 7): after each time no patch is left
// (agent/jvmti/take_back_rounds.h, in the verifying build), and the program's result is that of the untraced run.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class TakeBack : public JavaTest, public ::testing::WithParamInterface<Jdk> {
 protected:
  void SetUp() override {
    setenv("CLASSACCESS_AGENT", CLASSACCESS_VERIFY_LIBRARY, 1);
    JavaTest::SetUp();
  }
  void TearDown() override {
    unsetenv("CLASSACCESS_TAKE_BACK_ROUNDS");
    JavaTest::TearDown();
  }
};

// Ten times; a hundred with CLASSACCESS_FULL=1.
TEST_P(TakeBack, LeavesNoPatch) {
  const int rounds = full_run() ? 100 : 10;
  const int program_rounds = rounds == 100 ? 16 : 2;
  setenv("CLASSACCESS_TAKE_BACK_ROUNDS", std::to_string(rounds).c_str(), 1);
  JavaRun traced{GetParam(),
                 {"-Xmx96m", "-XX:+UseParallelGC", "-XX:-OmitStackTraceInFastThrow"},
                 "classes=torture.Unit+,events=off,log=info,out=" + path("run.db"),
                 {"torture.Torture", "4711", "4", std::to_string(program_rounds), "0", "messages"},
                 "",
                 800};
  ProcessResult expected = run_untraced(traced);
  ProcessResult result = run(traced);
  expect_done(result);
  EXPECT_EQ(result.out, expected.out);
  if (HasFailure()) return;

  const std::vector<std::string> lines = lines_with(result.err, "classaccess: round ");
  ASSERT_EQ(lines.size(), static_cast<size_t>(rounds)) << result.err;
  int all_found = 0, all_in_libraries = 0, all_restored = 0;
  for (const std::string& line : lines) {
    int found = 0, in_libraries = 0, left = -1, restored = 0, reused = 0, patched = -1;
    ASSERT_EQ(
        sscanf(line.c_str(), "%*d: %d jumps and %d in libraries, then %d; sites: %d as before, %d reused, %d patched",
               &found, &in_libraries, &left, &restored, &reused, &patched),
        6)
        << line;
    EXPECT_EQ(left, 0) << line;
    EXPECT_EQ(patched, 0) << line;
    EXPECT_GT(restored, reused) << line;
    all_found += found;
    all_in_libraries += in_libraries;
    all_restored += restored;
  }
  EXPECT_GT(all_found, 200 * rounds) << "nothing was there to be taken back";
  EXPECT_GT(all_in_libraries, rounds) << "libraries were probed too";
  EXPECT_GT(all_restored, 200 * rounds);
  Database db(path("run.db"), true);
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  EXPECT_GT(db.diagnostic("probed"), 100000) << "probes worked between the rounds";
}

INSTANTIATE_TEST_SUITE_P(Jdks, TakeBack, ::testing::ValuesIn(installed_jdks()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
