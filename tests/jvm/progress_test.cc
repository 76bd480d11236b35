// The live line of `classaccess run` and `attach` on a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/jvm/control_fixture.h"
#include "tests/jvm/terminal.h"

namespace classaccess {
namespace {

constexpr char kStart[] = "classaccess: ";

class Progress : public ControlFixture {
 protected:
  std::vector<std::string> command_of(const Jdk& jdk, const std::vector<std::string>& program) const {
    return command(JavaRun{jdk, {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, program, "", 120});
  }
  std::vector<std::string> launched(const std::vector<std::string>& options, const std::vector<std::string>& program) {
    std::vector<std::string> words = {classaccess_command(), "run", "--out", path("a.db")};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
  void touch(const std::string& name) const { std::ofstream(path(name)) << "go"; }
  int64_t recorded(bool ended) const {
    Database db(path("a.db"), ended);
    return db.is_open() ? db.integer("SELECT coalesce(sum(count), 0) FROM access_count") : -1;
  }
};

bool shows(const Terminal& terminal, const std::string& line) {
  std::vector<std::string> lines = terminal.lines();
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// The number in front of " accesses" in the line that stands there now; -1: there is none.
int64_t accesses_shown(const Terminal& terminal) {
  std::vector<std::string> lines = terminal.lines();
  if (lines.empty() || lines.back().compare(0, sizeof(kStart) - 1, kStart) != 0) return -1;
  std::string number;
  for (size_t i = sizeof(kStart) - 1; i < lines.back().size() && lines.back()[i] != ' '; ++i) {
    if (lines.back()[i] != ',') number += lines.back()[i];
  }
  return lines.back().find(" access") == std::string::npos ? -1 : std::strtoll(number.c_str(), nullptr, 10);
}

TEST_F(Progress, LineOfRunAgreesWithTheDatabaseAndLeavesNothing) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    SCOPED_TRACE(jdk.name);
    for (const char* file : {"go1", "end", "a.db"}) std::remove(path(file).c_str());
    Terminal terminal(launched({"--classes", "Rounds$Box"}, command_of(jdk, {"Rounds", "2", folder()})), "xterm");
    ASSERT_TRUE(terminal.read_until([&] { return shows(terminal, "READY"); }, 60)) << terminal.raw();
    EXPECT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) >= 0; }, 20)) << terminal.raw();
    touch("go1");
    ASSERT_TRUE(terminal.read_until([&] { return shows(terminal, "ROUND 1"); }, 60)) << terminal.raw();
    // Two threads, each 101 stores and loads.
    EXPECT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) >= 404; }, 20)) << terminal.raw();
    EXPECT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) == recorded(false); }, 20)) << terminal.raw();
    const int64_t shown = accesses_shown(terminal);
    const std::string line = terminal.lines().back();
    EXPECT_NE(line.find("/s, "), std::string::npos) << line;
    EXPECT_NE(line.find(" probe"), std::string::npos) << line;
    EXPECT_NE(line.find("database "), std::string::npos) << line;
    touch("end");
    EXPECT_EQ(terminal.finish(60), 0);
    EXPECT_EQ(recorded(true), shown);
    EXPECT_EQ(terminal.lines(), (std::vector<std::string>{"READY", "ROUND 1", "CHECK wrong=0", "DONE"}))
        << terminal.raw();
  }
}

TEST_F(Progress, StatusAndOutputAreThePrograms) {
  Terminal terminal(launched({}, command_of(newest_jdk(), {"Quiet"})), "xterm");
  EXPECT_EQ(terminal.finish(60), 7);
  for (const std::string& line : terminal.lines()) EXPECT_NE(line.compare(0, sizeof(kStart) - 1, kStart), 0) << line;
}

// What the program has written last has no end of line: a line drawn over it would take it away.
TEST_F(Progress, IsNotDrawnOverThePromptOfTheProgram) {
  Terminal terminal(launched({"--classes", "Prompts$Box"}, command_of(newest_jdk(), {"Prompts", folder()})), "xterm");
  ASSERT_TRUE(terminal.read_until([&] { return shows(terminal, "name? "); }, 60)) << terminal.raw();
  terminal.read_until([] { return false; }, 2);
  EXPECT_EQ(terminal.lines(), std::vector<std::string>{"name? "}) << terminal.raw();
  touch("answer");
  EXPECT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) > 0; }, 20)) << terminal.raw();
  touch("end");
  EXPECT_EQ(terminal.finish(60), 0);
  EXPECT_EQ(terminal.lines(), (std::vector<std::string>{"name? Anna", "DONE"})) << terminal.raw();
}

// A signal of the terminal is the program's.
TEST_F(Progress, ControlCEndsTheProgram) {
  Terminal terminal(launched({}, command_of(newest_jdk(), {"Rounds", "1", folder()})), "xterm");
  ASSERT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) >= 0; }, 60)) << terminal.raw();
  terminal.type("\003");
  EXPECT_EQ(terminal.finish(60), 130);  // HotSpot's
  EXPECT_EQ(accesses_shown(terminal), -1) << terminal.raw();
  Database db(path("a.db"), true);
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
}

TEST_F(Progress, CanBeSwitchedOff) {
  struct {
    std::vector<std::string> options;
    const char* term;
  } cases[] = {{{"--no-progress"}, "xterm"}, {{}, "dumb"}, {{}, ""}};
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string("TERM=") + c.term);
    for (const char* file : {"end", "a.db"}) std::remove(path(file).c_str());
    Terminal terminal(launched(c.options, command_of(newest_jdk(), {"Rounds", "1", folder()})), c.term);
    ASSERT_TRUE(terminal.read_until([&] { return shows(terminal, "READY"); }, 60)) << terminal.raw();
    terminal.read_until([] { return false; }, 1.5);
    touch("end");
    EXPECT_EQ(terminal.finish(60), 0);
    EXPECT_EQ(terminal.raw(), "READY\r\nCHECK wrong=0\r\nDONE\r\n");
  }
}

// `attach` shows it until ^C, which does not end the recording, or until somebody else ends it.
TEST_F(Progress, LineOfAttachEndsWithControlCOrWithTheRecording) {
  for (bool interrupted : {true, false}) {
    SCOPED_TRACE(interrupted);
    for (const char* file : {"go1", "end", "stdout"}) std::remove(path(file).c_str());
    const std::string db = interrupted ? "a.db" : "b.db";
    ASSERT_NO_FATAL_FAILURE(start_program(
        JavaRun{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, std::nullopt, {"Rounds", "2", folder()}, "", 120}));
    Terminal terminal({classaccess_command(), "attach", pid(), "--classes", "Rounds$Box", "--out", path(db)}, "xterm");
    EXPECT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) >= 0; }, 60)) << terminal.raw();
    round(1);
    EXPECT_TRUE(terminal.read_until([&] { return accesses_shown(terminal) >= 404; }, 20)) << terminal.raw();
    if (interrupted) {
      terminal.type("\003");
    } else {
      expect_command(0, {"stop", pid()});  // nobody waits for the command that shows the line
    }
    EXPECT_EQ(terminal.finish(20), 0);
    std::vector<std::string> lines = terminal.lines();
    ASSERT_GE(lines.size(), 2u) << terminal.raw();
    EXPECT_EQ(lines[0].find("recording to "), 0u) << lines[0];
    EXPECT_EQ(lines.back(), interrupted ? "classaccess: the recording goes on; `classaccess stop " + pid() + "` ends it"
                                        : "classaccess: the recording has ended");
    EXPECT_EQ(lines.size(), interrupted && lines[1] == "^C" ? 3u : 2u) << terminal.raw();
    if (interrupted) expect_command(0, {"stop", pid()});
    expect_done(finish_program());
    expect_round(db, 1, 2);
  }
}

}  // namespace
}  // namespace classaccess
