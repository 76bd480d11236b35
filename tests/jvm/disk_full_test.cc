// The application does not notice that the recording found no room (issue 2, test 7).
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class DiskFull : public JavaTest, public ::testing::WithParamInterface<Jdk> {
 protected:
  // A small heap: RLIMIT_FSIZE also limits the memory file behind it.
  JavaRun quiet(const std::string& database, int rounds) const {
    return JavaRun{GetParam(), {"-XX:+UseSerialGC", "-Xmx16m"}, "classes=Quiet*,events=all,out=" + database,
                   {"Quiet", std::to_string(rounds)}, "", 180};
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
    EXPECT_EQ(traced.err, "classaccess: " + ours[0] + "\n" + plain.err) << "nothing else, and nothing is cut off";
  }
};

TEST_P(DiskFull, SmallTmpfs) {
  ProcessSpec probe;
  probe.command = {"/usr/bin/unshare", "-Urm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"};
  if (run_process(probe).status != 0) GTEST_SKIP() << "unshare -Urm and mount are not allowed here";
  std::filesystem::create_directory(path("small"));
  const int rounds = 2000;
  ProcessSpec small = spec(quiet(path("small/run.db"), rounds));
  std::vector<std::string> inside = {"/usr/bin/unshare", "-Urm", "sh", "-c",
                                     "mount -t tmpfs -o size=2m none \"$0\" && exec \"$@\"", path("small")};
  small.command.insert(small.command.begin(), inside.begin(), inside.end());
  expect_untouched(run(small), rounds);
}

TEST_P(DiskFull, FileSizeLimit) {
  const int rounds = 6000;
  ProcessSpec limited = spec(quiet(path("run.db"), rounds));
  limited.file_size_limit = 32 << 20;
  expect_untouched(run(limited), rounds);
  EXPECT_TRUE(file_exists(path("run.db")));
  Database db(path("run.db"), false);
  db.expect_whole();
  EXPECT_GT(db.integer("SELECT count(*) FROM access"), 1000) << "what fitted is there";
}

INSTANTIATE_TEST_SUITE_P(Jdks, DiskFull, ::testing::ValuesIn(installed_jdks()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
