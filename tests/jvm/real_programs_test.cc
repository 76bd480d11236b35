// Programs nobody wrote for this test: javac and H2, with the JVM's default flags (issue 2, tests 4 and 5).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

class RealPrograms : public JavaTest, public ::testing::WithParamInterface<Jdk> {
 protected:
  // Path below `root` -> content.
  static std::map<std::string, std::string> files_below(const std::string& root) {
    std::map<std::string, std::string> files;
    std::error_code ec;
    for (const auto& entry : fs::recursive_directory_iterator(root, ec)) {
      if (entry.is_regular_file()) files[fs::relative(entry.path(), root).string()] = read_text(entry.path().string());
    }
    return files;
  }

  // Prints the shares of the traps that issue 2 limits, and checks the limits.
  void expect_shares(Database& db, const std::string& what) {
    double traps = static_cast<double>(db.diagnostic("traps"));
    ASSERT_GT(traps, 0);
    std::cout << what << ": " << static_cast<int64_t>(traps) << " traps";
    for (const char* name : {"emulated", "displaced", "stepped", "chained", "unresolved"}) {
      std::cout << ", " << name << " " << 100.0 * static_cast<double>(db.diagnostic(name)) / traps << " %";
    }
    std::cout << std::endl;
    // Of all accesses, however they were caught.
    double accesses = std::max(traps, static_cast<double>(db.diagnostic("accesses") + db.diagnostic("filtered")));
    EXPECT_LE(static_cast<double>(db.diagnostic("stepped")), 0.00001 * accesses);
    EXPECT_LE(static_cast<double>(db.diagnostic("unresolved")), 0.0001 * accesses) << db.unresolved_sites();
  }

  // The recording names methods and lines of the program for at least `share` of the accesses by Java code.
  void expect_lines(Database& db, const std::string& method_prefix, double share) {
    const std::string from =
        "FROM access_count a JOIN site s ON s.id = a.site_id WHERE s.kind IN ('interpreted', 'c1', 'c2')";
    int64_t all = db.integer("SELECT coalesce(sum(a.count), 0) " + from);
    int64_t told = db.integer("SELECT coalesce(sum(a.count), 0) " + from + " AND s.method != '' AND s.line > 0");
    ASSERT_GT(all, 0);
    EXPECT_GE(static_cast<double>(told), share * static_cast<double>(all)) << told << " of " << all;
    EXPECT_GT(db.integer("SELECT count(DISTINCT method) FROM site WHERE method LIKE '" + method_prefix + "%'"), 20);
  }
};

class Javac : public RealPrograms {};
class H2 : public RealPrograms {};

TEST_P(Javac, WritesTheSameClassFiles) {
  const Jdk& jdk = GetParam();
  const std::string source = std::string(CLASSACCESS_HARNESS_SOURCES) + "/JavacInput.java";
  // The launcher on one JDK, the module's main class on the others: both are how people start it.
  bool launcher = jdk.home == newest_jdk().home;
  std::vector<std::string> start =
      launcher ? std::vector<std::string>{jdk.home + "/bin/javac"} : std::vector<std::string>{jdk.java()};
  std::vector<std::string> main =
      launcher ? std::vector<std::string>{} : std::vector<std::string>{"-m", "jdk.compiler/com.sun.tools.javac.Main"};
  std::string agent = std::string(launcher ? "-J" : "") + "-agentpath:" + agent_library() +
                      "=classes=com.sun.tools.javac.code.**,out=" + path("run.db");

  for (bool traced : {false, true}) {
    ProcessSpec spec;
    spec.folder = folder();
    spec.limit_seconds = traced ? 600 : 120;
    spec.command = start;
    if (traced) spec.command.push_back(agent);
    spec.command.insert(spec.command.end(), main.begin(), main.end());
    for (const std::string& word : {std::string("-g"), std::string("-d"), path(traced ? "traced" : "plain"), source}) {
      spec.command.push_back(word);
    }
    ProcessResult result = run(spec);
    expect_status(result, 0);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "");
    if (HasFailure()) return;
    std::cout << (traced ? "traced " : "plain ") << result.seconds << " s\n";
  }
  std::map<std::string, std::string> plain = files_below(path("plain"));
  std::map<std::string, std::string> traced = files_below(path("traced"));
  EXPECT_GT(plain.size(), 5u);
  EXPECT_TRUE(plain == traced) << "class files differ";

  Database db(path("run.db"), true);
  db.expect_whole();
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  expect_shares(db, "javac on " + jdk.name);
  EXPECT_EQ(db.integer("SELECT count(*) FROM access_count a JOIN class c ON c.id = a.class_id "
                       "WHERE c.name NOT LIKE 'com.sun.tools.javac.code.%'"),
            0)
      << "a class that was not selected";
  for (const char* field : {"com.sun.tools.javac.code.Symbol.flags_field", "com.sun.tools.javac.code.Symbol.owner",
                            "com.sun.tools.javac.code.Type.tsym"}) {
    EXPECT_GT(db.integer("SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN field f ON f.id = a.field_id "
                         "JOIN class c ON c.id = f.class_id WHERE a.op = 'load' AND c.name || '.' || f.name = '" +
                         std::string(field) + "'"),
              100)
        << field;
  }
  EXPECT_GT(db.integer("SELECT count(DISTINCT class_id) FROM access_count"), 50);
  expect_lines(db, "com.sun.tools.javac.", 0.9);
}

TEST_P(H2, AnswersTheSame) {
  const std::string jar = "/usr/share/java/h2.jar";
  if (!file_exists(jar)) GTEST_SKIP() << jar << " is not there: apt-get install libh2-java";
  JavaRun java{GetParam(), {}, std::nullopt, {"SqlScript"}, harness_classes() + ":" + jar, 600};
  ProcessResult plain = run(java);
  expect_done(plain);
  java.agent_options = "classes=org.h2.**,out=" + path("run.db");
  ProcessResult traced = run(java);
  expect_done(traced);
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  EXPECT_GT(lines_with(plain.out, "").size(), 30u);
  if (HasFailure()) return;
  std::cout << "plain " << plain.seconds << " s, traced " << traced.seconds << " s\n";

  Database db(path("run.db"), true);
  db.expect_whole();
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  expect_shares(db, "H2 on " + GetParam().name);
  EXPECT_GT(db.integer("SELECT count(DISTINCT class_id) FROM access_count"), 50);
  expect_lines(db, "org.h2.", 0.9);
}

// Tens of millions of traps each, so CI runs each program on one JDK only.
std::vector<Jdk> some_jdks(const Jdk& one) { return full_run() ? installed_jdks() : std::vector<Jdk>{one}; }

INSTANTIATE_TEST_SUITE_P(Jdks, Javac, ::testing::ValuesIn(some_jdks(newest_jdk())),
                         [](const auto& param) { return param.param.name; });
INSTANTIATE_TEST_SUITE_P(Jdks, H2, ::testing::ValuesIn(some_jdks(oldest_jdk())),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
