// Who walks stacks while timed calls are under way: thread dumps, the serviceability agent, gdb, profilers, the JVM.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/jvm/control_fixture.h"

namespace classaccess {
namespace {

constexpr char kNative[] =
    "calls=libjava.so!*,libjvm.so!JVM_*,calls.Blocked.reads,calls.Blocked.waits,calls.Blocked.sleeps";

struct ToolMode {
  Jdk jdk;
  std::string flag, name;
};
std::ostream& operator<<(std::ostream& out, const ToolMode& mode) { return out << mode.name; }

class CallsUnderWay : public ControlFixture, public ::testing::WithParamInterface<ToolMode> {
 protected:
  JavaRun blocked() const {
    return {GetParam().jdk,
            {GetParam().flag, "-Xmx64m"},
            "mode=off,out=" + path("run.db") + "," + kNative,
            {"calls.Blocked", path("pipe")},
            "",
            240};
  }
  void start_blocked(const JavaRun& run) {
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    pipe_ = open(path("pipe").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(pipe_, 0);
    process_.emplace(spec(run));
    expect_output("BLOCKED\n");
  }
  void expect_output(const std::string& text) {
    ASSERT_TRUE(wait_until([&] { return read_text(path("stdout")).find(text) != std::string::npos; }, 120))
        << read_text(path("stdout")) << read_text(path("stderr"));
  }
  void give_a_byte() { ASSERT_EQ(write(pipe_, "x", 1), 1); }
  void TearDown() override {
    if (pipe_ >= 0) close(pipe_);
    ControlFixture::TearDown();
  }
  ProcessResult tool(const std::vector<std::string>& command) {
    ProcessSpec process;
    process.command = command;
    process.limit_seconds = 120;
    process.folder = path("tool" + std::to_string(commands_++));
    std::filesystem::create_directories(process.folder);
    return run(process);
  }
  // The thread's part of a dump has these texts, in this order.
  static void expect_frames(const std::string& dump, const std::string& thread,
                            const std::vector<std::string>& frames) {
    size_t at = dump.find(thread);
    ASSERT_NE(at, std::string::npos) << thread << " in " << dump;
    for (const std::string& frame : frames) {
      const size_t found = dump.find(frame, at);
      ASSERT_NE(found, std::string::npos) << frame << " of " << thread << " in " << dump;
      at = found;
    }
  }
  static void expect_blocked_threads(const std::string& dump) {
    expect_frames(dump, "\"reader\"",
                  {"java.io.FileInputStream.readBytes", "java.io.FileInputStream.read", "calls.Blocked.reads",
                   "calls.Blocked.main"});
    expect_frames(dump, "\"waiter\"", {"java.lang.Object.wait", "calls.Blocked.waits", "calls.Blocked$1.run"});
    expect_frames(dump, "\"sleeper\"", {"java.lang.Thread.sleep", "calls.Blocked.sleeps", "java.lang.Thread.run"});
  }

  int pipe_ = -1;
};

TEST_P(CallsUnderWay, ThreadDumpsAndDebuggersSeeAllFrames) {
  const JavaRun java = blocked();
  start_blocked(java);
  if (HasFatalFailure()) return;
  const std::string bin = java.jdk.home + "/bin/";
  // Java: three; native: the three below them, and those of threads of the JDK.
  const std::string status = expect_command(0, {"status", pid()});
  const size_t under_way = status.find(" under way");
  ASSERT_NE(under_way, std::string::npos) << status;
  EXPECT_GE(std::atoi(status.c_str() + status.rfind(' ', under_way - 1)), 6) << status;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{bin + "jcmd", pid(), "Thread.print"}, {bin + "jstack", "-l", pid()}}) {
    if (!file_exists(command[0])) continue;
    ProcessResult result = tool(command);
    expect_status(result, 0);
    SCOPED_TRACE(shell_line(command));
    expect_blocked_threads(result.out);
  }
  if (file_exists(bin + "jhsdb")) {
    // Reads the stopped process from outside, and the return address of each thread's last call off its stack: so the
    // innermost frame is not there, and none if a compiled method called (agent/doc/limits.md).
    ProcessResult result = tool({bin + "jhsdb", "jstack", "--pid", pid()});
    if ((result.out + result.err).find("ptrace") == std::string::npos) {
      expect_status(result, 0);
      if (GetParam().flag == "-Xint") {
        expect_frames(result.out, "\"reader\"", {"calls.Blocked.reads", "calls.Blocked.main"});
        expect_frames(result.out, "\"waiter\"", {"calls.Blocked.waits", "calls.Blocked$1.run"});
        expect_frames(result.out, "\"sleeper\"", {"calls.Blocked.sleeps", "java.lang.Thread.run"});
      }
    }
  }
  if (file_exists("/usr/bin/gdb")) {
    ProcessResult result = tool({"/usr/bin/gdb", "-nx", "-batch", "-iex", "set auto-load off", "-ex",
                                 "handle SIGSEGV SIGTRAP nostop noprint pass", "-ex", "thread apply all bt", "-ex",
                                 "detach", "-p", pid()});
    if (result.err.find("ptrace") == std::string::npos) {
      // Beyond the trampoline: the code that HotSpot has made, of which gdb knows no name.
      expect_frames(result.out, "\"reader\"", {"readBytes", "classaccess_return_trampolines", "?? ()"});
      expect_frames(result.out, "\"waiter\"", {"JVM_MonitorWait", "classaccess_return_trampolines", "?? ()"});
    }
  }
  give_a_byte();
  expect_output("AGAIN\n");
  ProcessResult again = tool({bin + "jcmd", pid(), "Thread.print"});
  expect_blocked_threads(again.out);
  give_a_byte();
  ProcessResult traced = process_->wait();
  expect_done(traced);
  EXPECT_EQ(traced.err, "");
  EXPECT_EQ(lines_with(traced.out, "STACK "), (std::vector<std::string>{"waiter true true", "sleeper true true"}));
  EXPECT_EQ(check_value(traced.out, "sum"), 3);
  Database db(path("run.db"), true);
  db.expect_whole();
  const std::string calls = "SELECT coalesce(sum(count), 0) FROM call_stat s JOIN function f ON f.id = s.function_id ";
  EXPECT_EQ(db.integer(calls + "WHERE f.name = 'calls.Blocked.reads'"), 2);
  EXPECT_GE(db.integer(calls + "WHERE f.name = 'Java_java_io_FileInputStream_readBytes'"), 2);
  EXPECT_GE(db.integer(calls + "WHERE f.name = 'JVM_MonitorWait'"), 1);
  EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE ended_by <> 'return' AND function_id IN (SELECT id FROM "
                       "function WHERE name LIKE 'calls.%' OR name = 'JVM_MonitorWait')"),
            0);
}

std::vector<ToolMode> tool_modes() {
  std::vector<ToolMode> modes;
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    const bool newest = jdk.home == newest_jdk().home;
    if (newest || full_run()) modes.push_back({jdk, "-Xint", jdk.name + "_xint"});
    if (!newest || full_run()) modes.push_back({jdk, "-Xcomp", jdk.name + "_xcomp"});
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(Modes, CallsUnderWay, ::testing::ValuesIn(tool_modes()),
                         [](const auto& param) { return param.param.name; });

class ProfiledCalls : public JavaTest {};

// AsyncGetCallTrace from a signal handler, wherever the threads are: in hooks, hooked functions, timed methods.
TEST_F(ProfiledCalls, AProfilerGetsItsStacks) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    JavaRun java{jdk, {"-XX:+UseSerialGC", "-agentpath:" CLASSACCESS_PROFILER}, std::nullopt, {"NativeTimes", "60"}, "",
                 120};
    const ProcessResult plain = run(java);
    expect_done(plain);
    java.agent_options =
        "mode=off,overwrite=on,out=run.db,calls=libzip.so!*,libz.so.1!*,libjvm.so!JVM_*,NativeTimes.*,"
        "java.util.zip.**.*";
    const ProcessResult traced = run(java);
    expect_done(traced);
    if (HasFailure()) return;
    EXPECT_EQ(traced.out, plain.out);
    // As large a share of the signals gives a stack as without hooks, or nearly.
    auto share = [](const ProcessResult& result) {
      return static_cast<double>(check_value(result.err, "stacks")) /
             static_cast<double>(check_value(result.err, "java"));
    };
    EXPECT_GT(check_value(traced.err, "java"), 30) << traced.err;
    EXPECT_GT(share(traced), 0.5 * share(plain)) << jdk << "\n" << plain.err << traced.err;
    std::cout << jdk << ": stacks of " << share(plain) << " of the signals, with timed calls " << share(traced) << "\n";
    Database db(path("run.db"), true);
    db.expect_whole();
    EXPECT_GT(db.integer("SELECT sum(count) FROM call_stat"), 1000);
    EXPECT_EQ(db.integer("SELECT count(*) FROM call_stat WHERE self_ns > total_ns OR min_ns > max_ns"), 0);
  }
}

}  // namespace
}  // namespace classaccess
