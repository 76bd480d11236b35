// calls= in recordings that begin and end while the program runs, and with classes that change meanwhile.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/jvm/control_fixture.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct CallsControlMode {
  Jdk jdk;
  std::string recording;  // mode=
  bool loaded;            // by -agentpath, not attached
  std::string name() const { return jdk.name + "_" + recording + (loaded ? "_loaded" : "_attached"); }
};
std::ostream& operator<<(std::ostream& out, const CallsControlMode& mode) { return out << mode.name(); }

class CallsControl : public ControlFixture, public ::testing::WithParamInterface<CallsControlMode> {
 protected:
  // The round that was taken while it was recorded, by each thread once; all calls but those under way have ended.
  void expect_takes(const std::string& name, int threads) {
    SCOPED_TRACE(name);
    Database db(path(name), true);
    ASSERT_TRUE(db.is_open()) << db.error();
    EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
    EXPECT_EQ(db.integer("SELECT coalesce(sum(calls), 0) FROM v_call WHERE function = 'Rounds.take'"), threads);
    EXPECT_EQ(
        db.integer("SELECT sum(h.count) FROM call_histogram h JOIN function f ON f.id = function_id WHERE f.name = "
                   "'Rounds.take'"),
        threads);
    EXPECT_GT(db.integer("SELECT coalesce(sum(calls), 0) FROM v_call WHERE function = 'Rounds.keepBusy'"), threads);
    EXPECT_GT(db.integer("SELECT count(*) FROM function WHERE kind = 'native' AND refused IS NULL"), 100);
    // The main thread sleeps between its looks for files.
    EXPECT_GT(db.integer("SELECT coalesce(sum(calls), 0) FROM v_call WHERE function LIKE 'Java_java_lang_%' OR "
                         "function LIKE 'JVM_Sleep%' OR function LIKE 'Java_java_io_UnixFileSystem%'"),
              0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM call_stat WHERE self_ns > total_ns OR min_ns > max_ns"), 0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE end_ns < start_ns"), 0);
    if (GetParam().recording == "access") {
      // 100 and the round's number, each a store and a load.
      EXPECT_GE(db.integer("SELECT coalesce(sum(n.count), 0) FROM call_class_count n JOIN function f ON f.id = "
                           "n.function_id JOIN class c ON c.id = n.class_id WHERE f.name = 'Rounds.take' AND c.name = "
                           "'Rounds$Box' AND n.op = 'store'"),
                threads * 100);
    }
  }
};

TEST_P(CallsControl, EachRecordingHasItsCallsAndLeavesNothing) {
  const CallsControlMode& mode = GetParam();
  constexpr int kThreads = 8;
  const bool access = mode.recording == "access";
  const std::string calls = "Rounds.take,Rounds.keepBusy,libjvm.so!JVM_*,libjava.so!*,libzip.so!*";
  JavaRun run{mode.jdk, {"-Xmx256m"}, std::nullopt, {"Rounds", std::to_string(kThreads), folder()}, "", 300};
  if (mode.loaded) {
    run.agent_options =
        "mode=" + mode.recording + (access ? ",classes=Rounds$*" : "") + ",calls=" + calls + ",out=" + path("first.db");
  }
  ASSERT_NO_FATAL_FAILURE(start_program(run));
  int done = 0;
  if (mode.loaded) {
    round(++done);
    expect_command(0, {"stop", pid()});
    expect_takes("first.db", kThreads);
    expect_nothing_left();
    round(++done);  // not recorded
  }
  for (const char* name : {"a.db", "b.db"}) {
    std::vector<std::string> words = {mode.loaded ? "start" : "attach",
                                      pid(),
                                      "--out",
                                      path(name),
                                      "--mode",
                                      mode.recording,
                                      "--calls",
                                      calls,
                                      "--events",
                                      "1000"};
    if (access) words.insert(words.end(), {"--classes", "Rounds$*"});
    expect_command(0, words);
    round(++done);
    const std::string status = expect_command(0, {"status", pid()});
    EXPECT_NE(status.find("timed calls: "), std::string::npos) << status;
    EXPECT_NE(status.find(" Rounds.keepBusy"), std::string::npos) << status;
    expect_command(0, {"stop", pid()});
    expect_takes(name, kThreads);
    expect_nothing_left();
    round(++done);
  }
  expect_command(0, {"detach", pid()});
  ProcessResult result = finish_program();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
}

std::vector<CallsControlMode> calls_control_modes() {
  std::vector<CallsControlMode> modes;
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    const bool newest = jdk.home == newest_jdk().home;
    for (const char* recording : {"off", "access"}) {
      for (bool loaded : {false, true}) {
        const bool ci = loaded == (newest == (std::string(recording) == "off"));
        if (ci || full_run()) modes.push_back({jdk, recording, loaded});
      }
    }
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(Modes, CallsControl, ::testing::ValuesIn(calls_control_modes()),
                         [](const auto& param) { return param.param.name(); });

class RedefinedCalls : public JavaTest, public ::testing::WithParamInterface<Jdk> {};

TEST_P(RedefinedCalls, EachCallEndsOnce) {
  for (Execution execution : {Execution::kInterpreted, Execution::kC1, Execution::kC2}) {
    JavaRun java{
        GetParam(), execution_flags(execution), std::nullopt, {"calls.Redefined", full_run() ? "400" : "40"}, "", 120};
    // HotSpot 17 retransforms from the class file it has seen first, if some agent has changed that:
    // agent/doc/limits.md.
    if (GetParam().major >= 21) java.program.push_back("retransform");
    java.flags.push_back("-Dharness.native=" CLASSACCESS_HARNESS_NATIVE);
    java.flags.push_back("-Xverify:all");
    const ProcessResult plain = run(java);
    expect_done(plain);
    java.agent_options = "mode=off,events=all,overwrite=on,calls=calls.Redefined$Before.*,out=" + path("run.db");
    const ProcessResult traced = run(java);
    expect_done(traced);
    if (HasFailure()) return;
    EXPECT_EQ(traced.out, plain.out);
    Database db(path("run.db"), true);
    db.expect_whole();
    const std::vector<std::string> expected = lines_with(traced.out, "EXPECT "),
                                   thrown = lines_with(traced.out, "THROWN ");
    ASSERT_EQ(expected.size(), 2u);
    ASSERT_EQ(thrown.size(), 1u);
    for (const std::string& line : expected) {
      const std::string name = line.substr(0, line.find('='));
      EXPECT_EQ(db.integer("SELECT sum(calls) FROM v_call WHERE function = '" + name + "'"),
                std::atoll(line.c_str() + name.size() + 1))
          << name << " " << execution_flags(execution).front();
    }
    EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE ended_by = 'exception'"),
              std::atoll(thrown[0].c_str() + thrown[0].find('=') + 1));
    EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE ended_by = 'unwound'"), 0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE end_ns < start_ns OR self_ns < 0 OR self_ns > end_ns - "
                         "start_ns"),
              0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM function"), 3) << db.text("SELECT group_concat(name) FROM function");
  }
}

INSTANTIATE_TEST_SUITE_P(Jdks, RedefinedCalls, ::testing::ValuesIn(oldest_and_newest_jdk()),
                         [](const auto& param) { return param.param.name; });

class CallsAndAFullDisk : public JavaTest {};

// Threads of Java methods wait for the writer, but not for one that has failed.
TEST_F(CallsAndAFullDisk, TheProgramGoesOn) {
  JavaRun java{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx16m"}, std::nullopt, {"calls.Spins", "4"}, "", 120};
  const ProcessResult plain = run(java);
  expect_done(plain);
  java.agent_options = "mode=off,events=all,calls=calls.Spins.timed*,out=" + path("run.db");
  ProcessSpec limited = spec(java);
  limited.file_size_limit = 18 << 20;  // of the heap's file too
  const ProcessResult traced = run(limited);
  expect_done(traced);
  EXPECT_NE(traced.err.find("file size limit reached"), std::string::npos) << traced.err;
}

class H2Calls : public JavaTest {};

// Which classes each command of a database touches.
TEST_F(H2Calls, CommandsNameTheClassesTheyTouch) {
  const std::string jar = "/usr/share/java/h2.jar";
  if (!file_exists(jar)) GTEST_SKIP() << jar << " is not there: apt-get install libh2-java";
  JavaRun java{newest_jdk(), {}, std::nullopt, {"SqlScript"}, harness_classes() + ":" + jar, 600};
  const ProcessResult plain = run(java);
  expect_done(plain);
  java.agent_options =
      "calls=org.h2.command.Command.*,libzip.so!*,libjvm.so!JVM_*,classes=org.h2.value.**,out=" + path("run.db");
  const ProcessResult traced = run(java);
  expect_done(traced);
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  if (HasFailure()) return;
  Database db(path("run.db"), true);
  db.expect_whole();
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  // 200 inserts, two tables, an index, an update; four queries.
  const std::string calls = "SELECT coalesce(sum(calls), 0) FROM v_call WHERE function LIKE 'org.h2.command.Command.";
  EXPECT_GE(db.integer(calls + "executeUpdate%'"), 204);
  EXPECT_GE(db.integer(calls + "executeQuery%'"), 4);
  EXPECT_LT(db.integer(calls + "executeQuery%'"), 20);
  EXPECT_GT(db.integer("SELECT coalesce(sum(s.count), 0) FROM call_stat s JOIN function f ON f.id = s.function_id "
                       "WHERE f.library = 'libjvm.so'"),
            100);
  EXPECT_GT(db.integer("SELECT coalesce(sum(s.count), 0) FROM call_stat s JOIN function f ON f.id = s.function_id "
                       "WHERE f.library = 'libzip.so'"),
            10);
  const std::string touched = "FROM v_call_class WHERE function LIKE 'org.h2.command.Command.execute";
  EXPECT_GE(db.integer("SELECT count(DISTINCT class) " + touched + "Update%' AND class LIKE 'org.h2.value.%'"), 5);
  EXPECT_GE(db.integer("SELECT count(DISTINCT class) " + touched + "Query%' AND class LIKE 'org.h2.value.%'"), 5);
  EXPECT_EQ(db.integer("SELECT count(*) FROM v_call_class WHERE class NOT LIKE 'org.h2.value.%'"), 0);
  // What a call touched is part of what was touched.
  EXPECT_EQ(db.integer("SELECT count(*) FROM (SELECT class_id, op, function_id, sum(count) AS n FROM call_class_count "
                       "GROUP BY class_id, op, function_id) c WHERE n > (SELECT sum(count) FROM access_count a WHERE "
                       "a.class_id = c.class_id AND a.op = c.op)"),
            0);
  std::cout << "plain " << plain.seconds << " s, traced " << traced.seconds << " s\n"
            << db.text(
                   "SELECT group_concat(line, char(10)) FROM (SELECT function || ' ' || class || ' ' || sum(accesses) "
                   "AS line FROM v_call_class GROUP BY function, class ORDER BY sum(accesses) DESC LIMIT 12)")
            << "\n";
}

}  // namespace
}  // namespace classaccess
