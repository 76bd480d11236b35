// Threads that change shared objects under the agent: no lost update, no torn value, no changed neighbour, no outcome
// that the memory model forbids. All threads observed, or one of them while the others run at full speed.
#include <gtest/gtest.h>

#include <cstdio>
#include <iostream>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct AtomicMode {
  Mode mode;
  bool one_thread = false;

  std::string name() const { return mode.name() + (one_thread ? "_one" : "_all"); }
};

std::ostream& operator<<(std::ostream& out, const AtomicMode& mode) { return out << mode.name(); }

std::vector<AtomicMode> atomic_modes() {
  std::vector<AtomicMode> modes;
  for (Execution execution : {Execution::kInterpreted, Execution::kC1, Execution::kC2}) {
    for (bool mprotect : {false, true}) {
      for (bool one : {false, true}) {
        for (const Jdk& jdk : installed_jdks()) {
          // In CI one JDK and one choice of threads for each execution mode and back end, in turn.
          bool oldest = jdk.home == oldest_jdk().home, turn = (execution == Execution::kC1) != mprotect;
          Collector collector = mprotect ? Collector::kSerial : Collector::kG1;
          if (full_run() || (one == turn && oldest == (turn != (execution == Execution::kC2)))) {
            modes.push_back({Mode{jdk, execution, collector, true, false, 8, mprotect}, one});
          }
        }
      }
    }
  }
  return modes;
}

class Atomic : public JavaTest, public ::testing::WithParamInterface<AtomicMode> {
 protected:
  // Runs it traced and checks each of its `lines` TEST lines.
  void check(const std::string& program, int millis, size_t lines) {
    const Mode& mode = GetParam().mode;
    std::vector<std::string> flags = collector_flags(mode.collector);
    flags.push_back("-Xmx256m");
    if (mode.execution == Execution::kInterpreted) {
      flags.push_back("-Xint");
    } else {
      flags.push_back(mode.execution == Execution::kC1 ? "-XX:TieredStopAtLevel=1" : "-XX:-TieredCompilation");
      for (const char* flag : {"-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,atomic.*::*"}) {
        flags.push_back(flag);
      }
    }
    if (!jdk_accepts(mode.jdk, flags)) GTEST_SKIP() << mode.jdk.home << " does not take " << mode.name();
    std::string db_path = path("run.db");
    std::string options = "classes=atomic.**,events=off,out=" + db_path + mode.agent_options();
    if (GetParam().one_thread) options += ",threads=*-0";
    ProcessResult result = run(JavaRun{mode.jdk, flags, options, {program, std::to_string(millis)}, "", 240});
    expect_done(result);
    std::vector<std::string> tests = lines_with(result.out, "TEST ");
    EXPECT_EQ(tests.size(), lines);
    for (const std::string& line : tests) {
      std::cout << mode.name() << ": " << line << "\n";
      char name[64];
      long wrong = -1, done = 0;
      ASSERT_EQ(std::sscanf(line.c_str(), "%63s wrong=%ld done=%ld", name, &wrong, &done), 3) << line;
      EXPECT_GT(done, 0) << line;
      if (std::string(name).rfind("plain.", 0) != 0) {
        EXPECT_EQ(wrong, 0) << line;
      }
    }
    Database db(db_path, true);
    ASSERT_TRUE(db.is_open()) << db.error();
    EXPECT_EQ(db.diagnostic("dropped"), 0);
    EXPECT_GT(db.integer("SELECT sum(count) FROM access_count a JOIN class c ON c.id = a.class_id "
                         "WHERE c.name LIKE 'atomic.%' AND a.part = 'field'"),
              100);
    int64_t others = db.integer(
        "SELECT coalesce(sum(count), 0) FROM access_count a JOIN thread t ON t.id = a.thread_id "
        "WHERE t.name NOT LIKE '%-0'");
    if (GetParam().one_thread)
      EXPECT_EQ(others, 0);
    else
      EXPECT_GT(others, 0);
  }
};

TEST_P(Atomic, NoUpdateIsLost) { check("atomic.Updates", full_run() ? 1500 : 150, 19); }

TEST_P(Atomic, NothingForbiddenIsSeen) { check("atomic.Litmus", full_run() ? 800 : 60, 13); }

INSTANTIATE_TEST_SUITE_P(Modes, Atomic, ::testing::ValuesIn(atomic_modes()),
                         [](const auto& param) { return param.param.name(); });

}  // namespace
}  // namespace classaccess
