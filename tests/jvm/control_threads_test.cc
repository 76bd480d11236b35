// What threads are doing when a recording is ended: waiting in a system call, or in another's
// signal handler that has interrupted our code.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/jvm/control_fixture.h"

namespace classaccess {
namespace {

class ControlThreads : public ControlFixture {
 protected:
  // Rounds with two more threads, which wait in a read of a pipe between their rounds.
  static constexpr int kBusy = 4, kWaiting = 2;
  void start_with_pipes(const Jdk& jdk) {
    for (int i = 0; i < kWaiting; ++i) {
      const std::string pipe = path("pipe" + std::to_string(i));
      ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
      pipes_[i] = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
      ASSERT_GE(pipes_[i], 0);
    }
    JavaRun run{jdk,
                {"-XX:+UseG1GC", "-Xmx128m"},
                "start=manual,classes=Rounds$*,events=100",
                {"Rounds", std::to_string(kBusy), folder(), "read"},
                "",
                120};
    start_program(run);
  }
  // A round of all: those that wait are woken.
  void round_of_all(int number) {
    for (int pipe : pipes_) ASSERT_EQ(write(pipe, "x", 1), 1);
    round(number);
  }
  void TearDown() override {
    for (int pipe : pipes_) close(pipe);
    ControlFixture::TearDown();
  }

  int pipes_[kWaiting] = {-1, -1};
};

// Threads that wait in a read (JNI's and NIO's) when the recording is ended keep nothing of it:
// what they do when they are woken is the next recording's, and exact.
TEST_F(ControlThreads, ThoseThatWaitAtTheEndAreTheNextRecordings) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    for (const char* file : {"go1", "go2", "go3", "go4", "end", "stdout", "pipe0", "pipe1"}) {
      std::remove(path(file).c_str());
    }
    ASSERT_NO_FATAL_FAILURE(start_with_pipes(jdk));
    int done = 0;
    for (const char* db : {"a.db", "b.db", "c.db"}) {
      expect_command(0, {"start", pid(), "--out", path(db), "--classes", "Rounds$*", "--events", "100"});
      round_of_all(++done);
      EXPECT_GT(jumps_to_probes(), 20);
      expect_command(0, {"stop", pid()});
      expect_round(db, done, kBusy + kWaiting);
      expect_nothing_left();
      // Woken while there is no recording.
      if (db == std::string("b.db")) round_of_all(++done);
    }
    ProcessResult result = finish_program();
    expect_done(result);
    EXPECT_EQ(check_value(result.out, "wrong"), 0);
    for (const char* db : {"a.db", "b.db", "c.db"}) std::remove(path(db).c_str());
    for (int& pipe : pipes_) close(pipe), pipe = -1;
    if (HasFailure()) return;
  }
}

// A native thread in a signal handler of the program's, which has interrupted a library's probe, goes
// back to the probe: until then the recording has not ended. (A safepoint waits for Java code.)
TEST_F(ControlThreads, AHandlerThatHasInterruptedAProbeIsWaitedFor) {
  const int threads = 2, rounds = 6;
  JavaRun run{newest_jdk(),
              {"-XX:+UseSerialGC", "-Xmx128m", "-agentpath:" CLASSACCESS_SLOW_HANDLER},
              "start=manual,classes=Rounds$*,events=100",
              {"Rounds", std::to_string(threads), folder()},
              "",
              180};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  int64_t copied = 0;
  for (int i = 1; i <= rounds; ++i) {
    const std::string db = "r" + std::to_string(i) + ".db";
    expect_command(0, {"start", pid(), "--out", path(db), "--classes", "Rounds$*,byte[]", "--events", "100"});
    round(i);
    if (HasFatalFailure()) return;
    sleep_seconds(0.8);  // between two signals the copiers trap and get their probes
    expect_command(0, {"stop", pid()});
    expect_round(db, i, threads);
    if (HasFailure()) break;
    copied += Database(path(db), true)
                  .integer(
                      "SELECT coalesce(sum(count), 0) FROM access_count a JOIN site s ON s.id = a.site_id WHERE "
                      "s.library LIKE '%libc.so%'");
    std::remove(path(db).c_str());
  }
  expect_nothing_left();
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
  EXPECT_GT(check_value(result.err, "signals"), rounds);
  EXPECT_GT(copied, 10) << "the library that copies is not traced";
}

// The recording fails, its probes are taken back while the program runs, but for those on two
// cache lines; stopped, none is left.
TEST_F(ControlThreads, AFailedRecordingIsTakenBackWholeByStop) {
  JavaRun run{newest_jdk(),
              {"-XX:+UseSerialGC", "-Xmx16m"},
              "events=all,out=" + path("a.db") + ",log=info",
              {"Rounds", "4", folder()},
              "",
              120};
  ProcessSpec limited = spec(run);
  limited.file_size_limit = 20 << 20;
  process_.emplace(limited);
  const auto said = [&](const char* what) { return read_text(path("stderr")).find(what) != std::string::npos; };
  ASSERT_TRUE(wait_until([&] { return said("stay until the recording is stopped"); }, 60)) << read_text(path("stderr"));
  EXPECT_NE(expect_command(0, {"status", pid()}).find("has failed"), std::string::npos);
  expect_command(0, {"stop", pid()});
  expect_nothing_left();
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
}

}  // namespace
}  // namespace classaccess
