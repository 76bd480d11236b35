// The classaccess command on a JVM that runs: attach, detach, start, stop, status, snapshot.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/jvm/control_fixture.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct ControlMode {
  Jdk jdk;
  Collector collector;
  std::string options;  // of the recordings
  bool loaded;          // by -agentpath, not attached
  std::string name() const {
    return test_name(jdk.name + "_" + collector_flags(collector).back().substr(8) + (loaded ? "_loaded" : "_attached") +
                     options);
  }
};
std::ostream& operator<<(std::ostream& out, const ControlMode& mode) { return out << mode.name(); }

std::vector<ControlMode> control_modes() {
  std::vector<ControlMode> modes;
  for (const Jdk& jdk : installed_jdks()) {
    bool newest = jdk.home == newest_jdk().home;
    for (Collector c : {Collector::kSerial, Collector::kParallel, Collector::kG1, Collector::kShenandoah}) {
      for (bool loaded : {false, true}) {
        bool ci = c == Collector::kG1 ||
                  (c == Collector::kShenandoah ? newest && !loaded : newest == (c == Collector::kSerial) && loaded);
        if (ci || full_run()) modes.push_back({jdk, c, "", loaded});
      }
    }
    if (newest || full_run()) modes.push_back({jdk, Collector::kSerial, ",protect=mprotect", true});
    if (!newest || full_run()) modes.push_back({jdk, Collector::kParallel, ",twin=off", false});
  }
  return modes;
}

class Control : public ControlFixture, public ::testing::WithParamInterface<ControlMode> {};

// Each recording has exactly the rounds between its start and its stop, by up to 64 busy threads;
// afterwards nothing of it is left.
TEST_P(Control, RecordingsAreExactAndLeaveNothing) {
  const ControlMode& mode = GetParam();
  std::vector<std::string> flags = collector_flags(mode.collector);
  flags.push_back("-Xmx256m");
  if (!jdk_accepts(mode.jdk, flags)) GTEST_SKIP() << mode.jdk.home << " does not take " << mode.name();
  const int threads = mode.collector == Collector::kG1 || full_run() ? 64 : 8;
  std::vector<std::string> options = long_options("classes=Rounds$*,events=100" + mode.options);
  JavaRun run{mode.jdk, flags, std::nullopt, {"Rounds", std::to_string(threads), folder()}, "", 300};
  if (mode.loaded) run.agent_options = "classes=Rounds$*,events=100,out=" + path("first.db") + mode.options;
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  Leftovers before = leftovers();
  int done = 0;
  if (mode.loaded) {
    round(++done);
    expect_command(0, {"stop", pid()});
    expect_round("first.db", done, threads);
    expect_nothing_left();
    round(++done);  // not recorded
  } else {
    EXPECT_FALSE(before.agent_thread);
  }
  for (const char* name : {"a.db", "b.db"}) {
    std::vector<std::string> words{mode.loaded ? "start" : "attach", pid(), "--out", path(name)};
    words.insert(words.end(), options.begin(), options.end());
    expect_command(0, words);
    round(++done);
    expect_command(0, {"snapshot", pid()});
    expect_round(name, done, threads, "running");
    expect_command(0, {"stop", pid()});
    expect_round(name, done, threads);
    expect_nothing_left();
    round(++done);
  }
  expect_command(0, {"detach", pid()});
  Leftovers after = leftovers();
  EXPECT_FALSE(after.agent_thread);
  EXPECT_FALSE(after.control_file);
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, Control, ::testing::ValuesIn(control_modes()),
                         [](const auto& param) { return param.param.name(); });

class ControlH2 : public ControlFixture {};

// H2 at work in four threads: what it answers stays right, what is recorded is exact from the
// start's return on.
TEST_F(ControlH2, AttachIsExactAndHarmless) {
  const std::string jar = "/usr/share/java/h2.jar";
  if (!file_exists(jar)) GTEST_SKIP() << jar << " is not there: apt-get install libh2-java";
  JavaRun run{oldest_jdk(), {"-Xmx256m"}, std::nullopt, {"Rounds", "4", folder(), "sql"}, harness_classes() + ":" + jar,
              300};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  sleep_seconds(1);
  expect_command(0, {"attach", pid(), "--out", path("a.db"), "--events", "1000"});
  round(1);
  expect_command(0, {"detach", pid()});
  expect_round("a.db", 1, 4);
  expect_nothing_left();
  round(2);
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
  Database db(path("a.db"), true);
  EXPECT_GT(db.integer("SELECT count(*) FROM class WHERE name LIKE 'org.h2.%'"), 50);
}

class ControlOrder : public ControlFixture {};

// Commands in the wrong order are refused, say why, and change nothing.
TEST_F(ControlOrder, WrongOrderIsSaid) {
  JavaRun run{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "2", folder()}, "", 120};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  EXPECT_NE(expect_command(1, {"status", pid()}).find("has no agent that can be controlled"), std::string::npos);
  EXPECT_NE(expect_command(1, {"stop", pid()}).find("has no agent"), std::string::npos);
  EXPECT_NE(expect_command(1, {"detach", pid()}).find("has no agent"), std::string::npos);
  expect_command(0, {"attach", pid(), "--start", "manual"});
  EXPECT_NE(expect_command(0, {"status", pid()}).find("no recording is active"), std::string::npos);
  EXPECT_NE(expect_command(1, {"stop", pid()}).find("no recording is active"), std::string::npos);
  EXPECT_NE(expect_command(1, {"snapshot", pid()}).find("no recording is active"), std::string::npos);
  expect_command(0, {"start", pid(), "--out", path("a.db"), "--classes", "Rounds$*"});
  for (const char* again : {"start", "attach"}) {
    std::string said = expect_command(1, {again, pid(), "--out", path("b.db")});
    EXPECT_NE(said.find("a recording is active in this JVM already, since 20"), std::string::npos) << said;
    EXPECT_NE(said.find(path("a.db")), std::string::npos) << said;
  }
  EXPECT_FALSE(file_exists(path("b.db")));
  round(1);
  EXPECT_NE(expect_command(0, {"status", pid()}).find(path("a.db")), std::string::npos);
  expect_command(0, {"stop", pid()});
  expect_round("a.db", 1, 2);
  EXPECT_NE(expect_command(1, {"stop", pid()}).find("no recording is active"), std::string::npos);
  // Its database is there: not replaced unless asked for.
  EXPECT_NE(expect_command(1, {"start", pid(), "--out", path("a.db")}).find("a.db"), std::string::npos);
  EXPECT_NE(expect_command(0, {"status", pid()}).find("no recording is active"), std::string::npos);
  expect_command(0, {"start", pid(), "--out", path("a.db"), "--overwrite", "on", "--classes", "Rounds$*"});
  round(2);
  expect_command(0, {"detach", pid()});
  expect_round("a.db", 2, 2);
  EXPECT_NE(expect_command(1, {"status", pid()}).find("has no agent"), std::string::npos);
  expect_command(0, {"attach", pid(), "--out", path("c.db"), "--classes", "Rounds$*"});
  round(3);
  ProcessResult result = finish_program();  // the JVM's end ends the recording
  expect_done(result);
  expect_round("c.db", 3, 2);
}

// A refused attach leaves nothing, and the command says the agent's reason.
TEST_F(ControlOrder, RefusedAttachLeavesNothing) {
  JavaRun run{oldest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "2", folder()}, "", 120};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  std::ofstream(path("exists.db")) << "x";
  EXPECT_NE(expect_command(1, {"attach", pid(), "--out", path("exists.db")}).find("exists.db"), std::string::npos);
  EXPECT_NE(expect_command(1, {"attach", pid(), "--heap", "1000-2000"}).find("outside the heap"), std::string::npos);
  EXPECT_NE(expect_command(2, {"attach", pid(), "--events", "few"}).find("events"), std::string::npos);
  EXPECT_NE(expect_command(2, {"attach"}).find("PID"), std::string::npos);
  expect_command(2, {"attach", pid(), "--nonsense", "1"});
  expect_command(2, {"nonsense"});
  Leftovers left = leftovers();
  EXPECT_FALSE(left.agent_thread);
  EXPECT_FALSE(left.control_file);
  EXPECT_EQ(left.keys, 0);
  EXPECT_EQ(expect_command(1, {"attach", "1999999999"}), "classaccess: there is no process 1999999999\n");
  std::string own = std::to_string(getpid());
  EXPECT_NE(expect_command(1, {"attach", own}).find("is not a JVM"), std::string::npos);
  expect_done(finish_program());
}

TEST_F(ControlOrder, EachCommandHasHelp) {
  for (const char* command : {"attach", "detach", "start", "stop", "status", "snapshot"}) {
    std::string said = expect_command(0, {command, "--help"});
    EXPECT_NE(said.find("PID"), std::string::npos) << said;
  }
  EXPECT_NE(expect_command(0, {"--help"}).find("attach"), std::string::npos);
  expect_command(2, {});
}

// The command is killed while the agent works for it: the request is carried out, the next
// command is answered.
TEST_F(ControlOrder, KilledCommandHoldsNothing) {
  JavaRun run{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "4", folder()}, "", 120};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  expect_command(0, {"attach", pid(), "--start", "manual"});
  for (int i = 0; i < 10; ++i) {
    std::string db = "kill" + std::to_string(i) + ".db";
    {
      ProcessSpec spec = command_spec({"start", pid(), "--out", path(db), "--classes", "Rounds$*"});
      Process command(spec);
      sleep_seconds(0.003 * i);
      command.kill_now();
      command.wait();
    }
    std::string said = expect_command(0, {"status", pid()});
    if (said.find(path(db)) != std::string::npos) expect_command(0, {"stop", pid()});
  }
  expect_command(0, {"start", pid(), "--out", path("last.db"), "--classes", "Rounds$*"});
  round(1);
  expect_command(0, {"detach", pid()});
  expect_round("last.db", 1, 4);
  expect_done(finish_program());
}

// The JVM is killed while a command waits for it, and is stopped: the command says so.
TEST_F(ControlOrder, KilledAndStoppedJvmIsSaid) {
  auto all_threads_stopped = [&] {
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid() + "/task")) {
      if (read_text(task.path() / "status").find("State:\tT") == std::string::npos) return false;
    }
    return true;
  };
  JavaRun run{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "2", folder()}, "", 120};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  expect_command(0, {"attach", pid(), "--out", path("a.db")});
  kill(std::atoi(pid().c_str()), SIGSTOP);
  // It stops when its threads have come to know of the signal: until then one may still answer.
  EXPECT_TRUE(wait_until(all_threads_stopped, 10));
  std::string said = expect_command(1, {"status", pid(), "--timeout", "1"});
  EXPECT_NE(said.find("has not answered for 1 s"), std::string::npos) << said;
  Process waiting(command_spec({"stop", pid()}));
  sleep_seconds(0.3);
  kill(std::atoi(pid().c_str()), SIGKILL);
  ProcessResult result = waiting.wait();
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("has ended meanwhile"), std::string::npos) << result.err;
  EXPECT_NE(expect_command(1, {"status", pid()}).find("there is no process"), std::string::npos);
}

// A control file that is not the process's own (a fork has inherited it): detected.
TEST_F(ControlOrder, ForeignControlFileIsDetected) {
  int fd = memfd_create("classaccess-control", 0);
  ASSERT_EQ(ftruncate(fd, sizeof(ControlBlock)), 0);
  ControlBlock block = {};
  std::memcpy(block.magic, kControlMagic, sizeof(kControlMagic));
  block.bytes = sizeof(block);
  block.owner_pid = getpid() + 1;
  ASSERT_EQ(pwrite(fd, &block, sizeof(block), 0), static_cast<ssize_t>(sizeof(block)));
  std::string said = expect_command(1, {"status", std::to_string(getpid())});
  EXPECT_NE(said.find("control file of another process"), std::string::npos) << said;
  block.owner_pid = getpid();  // an earlier process of this number
  block.owner_start = 1;
  ASSERT_EQ(pwrite(fd, &block, sizeof(block), 0), static_cast<ssize_t>(sizeof(block)));
  said = expect_command(1, {"status", std::to_string(getpid())});
  EXPECT_NE(said.find("control file of another process"), std::string::npos) << said;
  close(fd);
}

// Another user's process: the kernel refuses, the command says what to do.
TEST_F(ControlOrder, AnotherUserIsRefused) {
  if (geteuid() != 0 || !file_exists("/usr/bin/setpriv"))
    GTEST_SKIP() << "needs root and setpriv to become another user";
  JavaRun run{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "1", folder()}, "", 120};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  for (const char* command : {"status", "stop", "attach"}) {
    ProcessSpec spec = command_spec({command, pid()});
    spec.command.insert(spec.command.begin(), {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    ProcessResult result = this->run(spec);
    if (result.status == 127) GTEST_SKIP() << "another user may not run " << classaccess_command();
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_NE(result.err.find("run the command as the user that it belongs to"), std::string::npos) << result.err;
  }
  EXPECT_FALSE(leftovers().agent_thread);
  expect_done(finish_program());
}

// The -agentpath way to the same: nothing is recorded before `start`.
TEST_F(ControlOrder, StartManualWaitsForStart) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    for (const char* file : {"go1", "go2", "go3", "end", "stdout"}) std::remove(path(file).c_str());
    JavaRun run{jdk,
                {"-XX:+UseG1GC", "-Xmx128m"},
                "start=manual,classes=Rounds$*,events=100,out=" + path("x.db"),
                {"Rounds", "8", folder()},
                "",
                120};
    ASSERT_NO_FATAL_FAILURE(start_program(run));
    round(1);
    EXPECT_FALSE(file_exists(path("x.db")));
    expect_command(0, {"start", pid()});  // with the options of -agentpath
    round(2);
    EXPECT_GT(jumps_to_probes(), 20);
    EXPECT_GT(changed_library_bytes(), 20) << "libraries are probed too";
    expect_command(0, {"stop", pid()});
    expect_round("x.db", 2, 8);
    expect_nothing_left();
    {
      Database db(path("x.db"), true);
      EXPECT_GT(db.diagnostic("probes_laid"), 0);
      EXPECT_EQ(db.diagnostic("unresolved"), 0) << db.unresolved_sites();
    }
    expect_command(0, {"start", pid(), "--out", path("y.db"), "--classes", "Rounds$*"});
    round(3);
    ProcessResult result = finish_program();
    expect_done(result);
    EXPECT_EQ(check_value(result.out, "wrong"), 0);
    expect_round("y.db", 3, 8);
    for (const char* file : {"x.db", "y.db"}) std::remove(path(file).c_str());
    if (HasFailure()) return;
  }
}

// A later recording closes the twin's image of the page in front of the heap too, where null leads as a compressed
// oop with a base: a probe read zeros there, and no exception was thrown.
TEST_F(ControlOrder, NullStaysNullInALaterRecording) {
  const std::vector<std::string> flags = {"-XX:+UseSerialGC",
                                          "-Xmx64m",
                                          "-XX:HeapBaseMinAddress=40g",
                                          "-XX:-OmitStackTraceInFastThrow",
                                          "-XX:Tier4InvocationThreshold=100",
                                          "-XX:Tier4MinInvocationThreshold=50",
                                          "-XX:Tier4CompileThreshold=200"};
  JavaRun run{newest_jdk(), flags, std::nullopt, {"torture.Traces", "kinds", "1000", path("go")}, "", 120};
  std::ofstream(path("go")) << "go";
  ProcessResult expected = this->run(run);
  expect_done(expected);
  for (const char* file : {"go", "stdout"}) std::remove(path(file).c_str());
  run.agent_options = "start=manual";
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  expect_command(0, {"start", pid(), "--out", path("a.db"), "--classes", "torture.Traces$Node+", "--events", "off"});
  std::ofstream(path("go")) << "go";
  ProcessResult traced = process_->wait();
  expect_done(traced);
  EXPECT_EQ(traced.out, expected.out);
  Database db(path("a.db"), true);
  EXPECT_GT(db.diagnostic("probed"), 10000);
  EXPECT_GT(db.diagnostic("chained"), 1000) << "no null reached HotSpot as a fault";
}

// mode=pages: a snapshot has the classes of the pages, nothing is left, and another recording of
// either mode can follow.
TEST_F(ControlOrder, PagesAreGivenBack) {
  JavaRun run{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "4", folder()}, "", 120};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  int done = 0;
  for (const char* protect : {"auto", "auto", "mprotect"}) {
    const std::string db = "pages" + std::to_string(done) + ".db";
    const char* begin = done == 0 ? "attach" : "start";
    expect_command(0, {begin, pid(), "--out", path(db), "--mode", "pages", "--window", "4", "--protect", protect});
    round(++done);
    for (const char* end : {"snapshot", "stop"}) {
      expect_command(0, {end, pid()});
      Database recorded(path(db), true);
      EXPECT_GT(recorded.integer("SELECT sum(count) FROM page_access"), 100) << end;
      EXPECT_GT(recorded.integer("SELECT count(*) FROM page_class p JOIN class c ON c.id = p.class_id WHERE c.name = "
                                 "'Rounds$Box'"),
                0)
          << end;
      if (end == std::string("stop")) recorded.expect_whole();
    }
    expect_nothing_left();
    round(++done);
    if (HasFailure()) break;
  }
  expect_command(0, {"start", pid(), "--out", path("a.db"), "--classes", "Rounds$*"});
  round(++done);
  expect_command(0, {"detach", pid()});
  expect_round("a.db", done, 4);
  expect_nothing_left();
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
}

// Detach while threads are inside traps, again and again: 10 rounds, 100 in a full run.
TEST_F(ControlOrder, RoundsOfAttachAndDetach) {
  JavaRun run{newest_jdk(), {"-XX:+UseG1GC", "-Xmx128m"}, std::nullopt, {"Rounds", "16", folder()}, "", 600};
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  const int rounds = full_run() ? 100 : 10;
  int64_t first = 0, last = 0;
  for (int i = 1; i <= rounds; ++i) {
    std::string db = "r" + std::to_string(i) + ".db";
    expect_command(0, {"attach", pid(), "--out", path(db), "--events", "100"});
    round(i);
    expect_command(0, {"detach", pid()});
    expect_round(db, i, 16);
    expect_nothing_left();
    Leftovers left = leftovers();
    EXPECT_FALSE(left.agent_thread);
    EXPECT_FALSE(left.control_file);
    (i == 2 ? first : last) = left.private_kb;
    std::filesystem::remove(path(db));
    if (HasFailure()) break;
  }
  EXPECT_LT((last - first) / rounds, 8 << 10);  // the tables' memory is given back
  std::cout << "private memory after round 2: " << first << " kB, at the end: " << last << " kB\n";
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
}

}  // namespace
}  // namespace classaccess
