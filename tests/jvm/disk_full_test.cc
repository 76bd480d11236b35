// The application does not notice that the recording found no room (issue 2, test 7).
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class DiskFull : public JavaTest, public ::testing::WithParamInterface<Jdk> {
 protected:
  // A small heap: RLIMIT_FSIZE also limits the memory file behind it (file_size_limit below).
  JavaRun quiet(const std::string& database, int rounds) const {
    return JavaRun{GetParam(),
                   {"-XX:+UseSerialGC", "-Xmx16m"},
                   "classes=Quiet*,events=all,out=" + database,
                   {"Quiet", std::to_string(rounds)},
                   "",
                   180};
  }

  void expect_untouched(ProcessResult traced, int rounds) {
    JavaRun untraced = quiet("", rounds);
    untraced.agent_options.reset();
    ProcessResult plain = run(untraced);
    expect_status(plain, 7);
    expect_status(traced, 7);
    EXPECT_EQ(traced.out, plain.out);
    std::vector<std::string> ours = lines_with(traced.err, "classaccess: ");
    ASSERT_EQ(ours.size(), 1u) << "one message:\n" << traced.err;
    EXPECT_TRUE(ours[0].find(".db") != std::string::npos || ours[0].find("full") != std::string::npos ||
                ours[0].find("database") != std::string::npos)
        << ours[0];
    const std::string line = "classaccess: " + ours[0] + "\n";
    size_t at = traced.err.find(line);
    EXPECT_EQ(traced.err.substr(0, at) + traced.err.substr(at + line.size()), plain.err)
        << "nothing else, nothing cut off";
  }
};

TEST_P(DiskFull, SmallTmpfs) {
  ProcessSpec probe;
  probe.command = {"/usr/bin/unshare", "-Urm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"};
  if (run_process(probe).status != 0) GTEST_SKIP() << "unshare -Urm and mount are not allowed here";
  std::filesystem::create_directory(path("small"));
  const int rounds = 2000;
  ProcessSpec small = spec(quiet(path("small/run.db"), rounds));
  std::vector<std::string> inside = {
      "/usr/bin/unshare", "-Urm", "sh", "-c", "mount -t tmpfs -o size=2m none \"$0\" && exec \"$@\"", path("small")};
  small.command.insert(small.command.begin(), inside.begin(), inside.end());
  expect_untouched(run(small), rounds);
}

TEST_P(DiskFull, FileSizeLimit) {
  const int rounds = 3000;
  ProcessSpec limited = spec(quiet(path("run.db"), rounds));
  limited.file_size_limit = 18 << 20;
  expect_untouched(run(limited), rounds);
  EXPECT_TRUE(file_exists(path("run.db")));
  Database db(path("run.db"), false);
  db.expect_whole();
  EXPECT_GT(db.integer("SELECT count(*) FROM access"), 1000) << "what fitted is there";
}

// The recording ends while probed code runs: its bytes become what they were, and it goes on.
TEST_P(DiskFull, ProbesTakenBackWhileTheProgramRuns) {
  const int rounds = 400000;
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE("round " + std::to_string(i));
    JavaRun traced = quiet(path("run.db"), rounds);
    *traced.agent_options += ",overwrite=on,log=info";
    if (i % 2 != 0) traced.flags.push_back("-XX:TieredStopAtLevel=1");
    ProcessSpec limited = spec(traced);
    limited.file_size_limit = 18 << 20;
    ProcessResult result = run(limited);
    expect_status(result, 7);
    EXPECT_EQ(lines_with(result.err, "quiet: a word").size(), 1u) << result.err;
    std::vector<std::string> lines = lines_with(result.err, "classaccess: probes: ");
    ASSERT_EQ(lines.size(), 1u) << result.err;
    int taken = 0, left = -1, waiting = -1;
    ASSERT_EQ(sscanf(lines[0].c_str(), "%d taken back, %d left, %d stay until", &taken, &left, &waiting), 3)
        << lines[0];
    EXPECT_GT(taken, 20);
    // Sites on two cache lines cannot be restored exactly while code comes and goes.
    EXPECT_EQ(left, waiting);
    EXPECT_LT(left * 5, taken);
  }
}

INSTANTIATE_TEST_SUITE_P(Jdks, DiskFull, ::testing::ValuesIn(installed_jdks()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
