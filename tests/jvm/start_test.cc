// The JVM's start: what a failed one leaves behind, where refusals go, and that the
// application's class loader is not asked for our sake.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

class StartTest : public JavaTest {
 protected:
  JavaRun quiet(const Jdk& jdk, const std::vector<std::string>& flags, const std::string& options) const {
    return JavaRun{jdk, flags, options, {"Quiet", "10"}, "", 60};
  }

  std::set<std::string> left_files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder())) names.insert(entry.path().filename().string());
    for (const char* own : {"command", "stdout", "stderr"}) names.erase(own);
    return names;
  }

  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
};

// JDK 25 warns with a time stamp that it has no archive for such a loader.
std::string without_warnings(const std::string& out) {
  std::string kept;
  for (const std::string& line : lines_with(out, "")) {
    if (line.find("[warning][cds") == std::string::npos) kept += line + "\n";
  }
  return kept;
}

struct BadFlag {
  const char* name;
  std::vector<std::string> flags;
};

std::ostream& operator<<(std::ostream& out, const BadFlag& bad) { return out << bad.flags.front(); }

class FailedStart : public StartTest, public ::testing::WithParamInterface<BadFlag> {};

TEST_P(FailedStart, LeavesNoDatabase) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    ProcessResult result = run(quiet(jdk, GetParam().flags, "classes=Quiet*,out=out.db"));
    expect_status(result, 1);
    EXPECT_EQ(result.out.find("quiet:"), std::string::npos) << jdk << ": the application ran";
    EXPECT_TRUE(lines_with(result.err, "classaccess:").empty()) << jdk << ": not our fault: " << result.err;
    EXPECT_EQ(left_files(), std::set<std::string>{}) << jdk << ": " << result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Jvm, FailedStart,
                         ::testing::Values(BadFlag{"NoSuchAgent", {"-agentlib:nosuch"}},
                                           BadFlag{"NoSuchModule", {"--add-modules", "no.such.module"}},
                                           BadFlag{"MinimumAboveMaximum", {"-Xmx64m", "-Xms128m"}},
                                           BadFlag{"HeapTooLarge", {"-Xms900000g", "-Xmx900000g"}}),
                         [](const auto& param) { return param.param.name; });

TEST_F(StartTest, CopyOfTheLibraryIsRefused) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    fs::copy_file(agent_library(), path("copy.so"), fs::copy_options::overwrite_existing);
    JavaRun java = quiet(jdk, {"-agentpath:" + path("copy.so") + "=out=second.db"}, "classes=Quiet*,out=first.db");
    ProcessResult result = run(java);
    expect_status(result, 1);
    EXPECT_EQ(lines_with(result.err, "classaccess: ").size(), 1u) << "one message: " << result.err;
    EXPECT_EQ(left_files(), std::set<std::string>{"copy.so"});
  }
}

TEST_F(StartTest, RefusalKeepsTheOlderRecording) {
  write("out.db", "precious");
  ProcessResult result = run(quiet(oldest_jdk(), {"-XX:+UseZGC"}, "out=out.db,overwrite=on"));
  expect_status(result, 1);
  EXPECT_EQ(lines_with(result.err, "classaccess: ").size(), 1u) << result.err;
  EXPECT_EQ(read_text(path("out.db")), "precious");
  EXPECT_EQ(left_files(), std::set<std::string>{"out.db"});
}

TEST_F(StartTest, RefusalGoesToStandardErrorToo) {
  const std::string bad_out = "log=warn:log.txt,out=/no/such/folder/x.db";
  for (const std::string& options : {std::string("log=warn:log.txt,clases=Foo"), bad_out}) {
    ProcessResult result = run(quiet(oldest_jdk(), {}, options));
    expect_status(result, 1);
    EXPECT_EQ(lines_with(result.err, "classaccess: ").size(), 1u) << result.err;
    EXPECT_EQ(left_files(), std::set<std::string>{}) << options;
  }
  write("log.txt", "older line\n");
  ProcessResult result = run(quiet(oldest_jdk(), {}, bad_out));
  expect_status(result, 1);
  std::vector<std::string> said = lines_with(result.err, "classaccess: ");
  ASSERT_EQ(said.size(), 1u) << result.err;
  EXPECT_EQ(read_text(path("log.txt")), "older line\nclassaccess: " + said[0] + "\n");
}

TEST_F(StartTest, UnwritableLogNamesTheOption) {
  ProcessResult result = run(quiet(oldest_jdk(), {}, "log=warn:/no/such/folder/log.txt,out=out.db"));
  expect_status(result, 1);
  std::vector<std::string> said = lines_with(result.err, "classaccess: option 'log': ");
  ASSERT_EQ(said.size(), 1u) << result.err;
  EXPECT_NE(said[0].find("/no/such/folder/log.txt"), std::string::npos) << said[0];
  EXPECT_EQ(left_files(), std::set<std::string>{});
}

TEST_F(StartTest, RangeOutsideTheHeapIsSaid) {
  ProcessResult plain = run(JavaRun{oldest_jdk(), {}, std::nullopt, {"Quiet", "10"}, "", 60});
  ProcessResult result = run(quiet(oldest_jdk(), {}, "heap=1000-2000,out=out.db"));
  expect_status(result, 7);
  EXPECT_EQ(result.out, plain.out);
  std::vector<std::string> said = lines_with(result.err, "classaccess: option 'heap': ");
  ASSERT_EQ(said.size(), 1u) << result.err;
  EXPECT_NE(said[0].find("1000-2000"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("untraced"), std::string::npos) << said[0];
  EXPECT_EQ(left_files(), std::set<std::string>{});
}

TEST_F(StartTest, LayoutIsLoggedWhole) {
  expect_status(run(quiet(oldest_jdk(), {}, "classes=Quiet*,log=debug:log.txt,out=out.db")), 7);
  std::string log = read_text(path("log.txt"));
  EXPECT_NE(log.find("\nclassaccess: layout: klass_name "), std::string::npos) << log;
  EXPECT_NE(log.find("\nclassaccess: layout: twin_distance "), std::string::npos) << log;
}

TEST_F(StartTest, ApplicationsLoaderIsNotAsked) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    JavaRun java{jdk, {"-Djava.system.class.loader=start.AskedLoader"}, std::nullopt, {"start.Threads"}, "", 120};
    ProcessResult plain = run(java);
    expect_done(plain);
    ASSERT_NE(plain.out.find("asked for start.Threads"), std::string::npos) << plain.out;
    java.agent_options = "classes=start.*,out=" + jdk.name + ".db";
    ProcessResult traced = run(java);
    expect_done(traced);
    EXPECT_EQ(without_warnings(traced.out), without_warnings(plain.out)) << jdk;
    Database db(path(jdk.name + ".db"), true);
    EXPECT_EQ(db.integer("SELECT count(*) FROM thread WHERE name = 'one' AND kind = 'platform'"), 1);
    if (jdk.major >= 21) {
      EXPECT_GT(db.integer("SELECT count(*) FROM thread WHERE kind = 'carrier'"), 0);
    }
  }
}

// Classes are entered while collections run and move their mirrors: no event waits for
// ever, and each class has its own and its inherited fields.
TEST_F(StartTest, FieldsAreKnownWhileCollectionsRun) {
  const int kLoaders = 40;
  for (const JavaRun& run_of : {JavaRun{oldest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m"}, {}, {}, "", 180},
                                JavaRun{newest_jdk(), {"-XX:+UseParallelGC", "-Xmx64m"}, {}, {}, "", 180}}) {
    JavaRun java = run_of;
    java.agent_options = "classes=start.Made,out=out.db,overwrite=on";
    java.program = {"start.Loaders", std::to_string(kLoaders)};
    expect_done(run(java));
    Database db(path("out.db"), true);
    EXPECT_GT(db.integer("SELECT count(*) FROM gc"), 10) << java.jdk;
    for (const std::string field : {"own", "inherited"}) {
      EXPECT_EQ(db.integer("SELECT sum(a.count) FROM access_count a JOIN field f ON f.id = a.field_id WHERE "
                           "a.op = 'store' AND a.part = 'field' AND f.name = '" +
                           field + "'"),
                kLoaders)
          << java.jdk << " " << field;
    }
  }
}

// The fields of a class are read for a sub class before the event of the class itself comes: no second row.
TEST_F(StartTest, ClassesLinkedTogetherHaveOneRow) {
  const int kLoaders = 8;
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    JavaRun java{jdk, {"-agentpath:" CLASSACCESS_SLOW_PREPARE}, {}, {"start.Linked", std::to_string(kLoaders)}, "", 60};
    java.flags.push_back("-agentpath:" + agent_library() + "=classes=start.*,out=out.db,overwrite=on");
    expect_done(run(java));
    Database db(path("out.db"), true);
    for (const std::string name : {"start.Made", "start.MadeBase"}) {
      EXPECT_EQ(db.integer("SELECT count(*) FROM class WHERE name = '" + name + "'"), kLoaders) << jdk << " " << name;
    }
    EXPECT_EQ(db.integer("SELECT count(DISTINCT f.id) FROM access_count a JOIN field f ON f.id = a.field_id "
                         "WHERE f.name = 'inherited'"),
              kLoaders);
  }
}

}  // namespace
}  // namespace classaccess
