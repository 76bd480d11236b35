// `classaccess run`: the agent is put into a JVM that is only starting.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>

#include "tests/jvm/control_fixture.h"

namespace classaccess {
namespace {

class Launch : public ControlFixture {
 protected:
  // classaccess run OPTIONS -- PROGRAM
  ProcessSpec launched(const std::vector<std::string>& options, const std::vector<std::string>& program) const {
    ProcessSpec spec;
    spec.command = {classaccess_command(), "run"};
    spec.command.insert(spec.command.end(), options.begin(), options.end());
    spec.command.push_back("--");
    spec.command.insert(spec.command.end(), program.begin(), program.end());
    spec.folder = folder();
    spec.limit_seconds = 120;
    return spec;
  }
  std::vector<std::string> java(const Jdk& jdk, const std::vector<std::string>& program) const {
    return command(JavaRun{jdk, {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, program, "", 120});
  }
  void start_launched(const ProcessSpec& spec) {
    process_.emplace(spec);
    bool ready = wait_until([&] { return read_text(path("stdout")).find("READY\n") != std::string::npos; }, 60);
    ASSERT_TRUE(ready) << read_text(path("stdout")) << read_text(path("stderr"));
  }
};

std::string with_zeros(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  return text;
}

std::string own_environment() {
  std::string text;
  for (char** variable = environ; *variable != nullptr; ++variable) text += std::string(*variable) + '\0';
  return text;
}

// The process that was started is the JVM; its command line and environment are what they would be,
// nobody traces it, and the commands work on it.
TEST_F(Launch, IsTheProgramItselfAndRecordsFromTheStart) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    SCOPED_TRACE(jdk.name);
    for (const char* file : {"go1", "end", "stdout"}) std::remove(path(file).c_str());
    std::string db = jdk.name + ".db";
    std::vector<std::string> program = java(jdk, {"Rounds", "4", folder()});
    ASSERT_NO_FATAL_FAILURE(start_launched(launched({"--out", path(db), "--classes", "Rounds$*"}, program)));
    EXPECT_EQ(read_text("/proc/" + pid() + "/cmdline"), with_zeros(program));
    EXPECT_EQ(read_text("/proc/" + pid() + "/environ"), own_environment());
    EXPECT_NE(read_text("/proc/" + pid() + "/status").find("TracerPid:\t0\n"), std::string::npos);
    round(1);
    EXPECT_NE(expect_command(0, {"status", pid()}).find(path(db)), std::string::npos);
    ProcessResult result = finish_program();
    expect_done(result);
    EXPECT_EQ(result.err, "");
    expect_round(db, 1, 4);
    Database recording(path(db), true);
    EXPECT_GT(recording.diagnostic("probes_laid"), 0);  // as with -agentpath
  }
}

TEST_F(Launch, OutputAndStatusAreThePrograms) {
  ProcessSpec untraced;
  untraced.command = java(newest_jdk(), {"Quiet"});
  untraced.folder = folder();
  ProcessResult plain = run(untraced);
  ProcessResult traced = run(launched({"--out", path("a.db")}, java(newest_jdk(), {"Quiet"})));
  EXPECT_EQ(plain.status, 7);
  EXPECT_EQ(traced.status, 7);
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  EXPECT_TRUE(file_exists(path("a.db")));
}

TEST_F(Launch, SignalsReachTheProgram) {
  ASSERT_NO_FATAL_FAILURE(
      start_launched(launched({"--out", path("a.db")}, java(newest_jdk(), {"Rounds", "1", folder()}))));
  kill(process_->pid(), SIGTERM);  // 143 by the JVM's own shutdown
  EXPECT_EQ(process_->wait().status, 143);
  Database term(path("a.db"), true);
  EXPECT_EQ(term.text("SELECT status FROM run"), "complete");
  std::remove(path("stdout").c_str());
  ASSERT_NO_FATAL_FAILURE(
      start_launched(launched({"--out", path("b.db")}, java(newest_jdk(), {"Rounds", "1", folder()}))));
  kill(process_->pid(), SIGKILL);
  EXPECT_EQ(process_->wait().signal, SIGKILL);
}

// java's launcher starts itself anew when LD_LIBRARY_PATH would hide its own libraries.
TEST_F(Launch, FollowsALauncherThatStartsItselfAnew) {
  const Jdk& jdk = oldest_jdk();
  std::vector<std::string> program{"/usr/bin/env", "LD_LIBRARY_PATH=" + jdk.home + "/lib/server"};
  for (const std::string& word : java(jdk, {"Quiet"})) program.push_back(word);
  ProcessResult result = run(launched({"--out", path("a.db")}, program));
  EXPECT_EQ(result.status, 7);
  Database db(path("a.db"), true);
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
}

// A script that executes java is followed; what it starts beside is not traced.
TEST_F(Launch, FollowsAScript) {
  std::string script = "/bin/true; echo from the script; exec " + shell_line(java(newest_jdk(), {"Quiet"}));
  ProcessResult result = run(launched({"--out", path("a.db")}, {"/bin/sh", "-c", script}));
  EXPECT_EQ(result.status, 7);
  EXPECT_EQ(result.out.rfind("from the script\n", 0), 0u) << result.out;
  Database db(path("a.db"), true);
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
}

TEST_F(Launch, SaysWhatIsWrong) {
  ProcessResult none = run(launched({}, {"/no/such/program"}));
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("cannot run '/no/such/program'"), std::string::npos) << none.err;
  ProcessResult no_jvm = run(launched({}, {"/bin/sh", "-c", "exit 3"}));
  EXPECT_EQ(no_jvm.status, 3);
  EXPECT_TRUE(
      wait_until([&] { return read_text(path("stderr")).find("without starting a JVM") != std::string::npos; }, 5))
      << read_text(path("stderr"));
  EXPECT_EQ(run(launched({"--events", "few"}, java(newest_jdk(), {"Quiet"}))).status, 2);
  EXPECT_EQ(run(launched({}, {})).status, 2);
  std::ofstream(path("exists.db")) << "x";
  ProcessResult exists = run(launched({"--out", path("exists.db")}, java(newest_jdk(), {"Quiet"})));
  EXPECT_EQ(exists.status, 1);
  EXPECT_NE(exists.err.find("exists.db"), std::string::npos) << exists.err;
}

// Where ptrace is refused (a strict container) the other way is named, with the same options.
TEST_F(Launch, RefusedPtraceNamesTheOtherWay) {
  ProcessSpec spec = launched({"--classes", "Foo", "--out", path("a.db")}, java(newest_jdk(), {"Quiet"}));
  spec.command.insert(spec.command.begin(), {CLASSACCESS_REFUSE_SYSCALLS, "ptrace"});
  ProcessResult result = run(spec);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("ptrace is refused here"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("-agentpath:" + agent_library() + "=classes=Foo,out="), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace classaccess
