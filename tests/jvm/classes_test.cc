// Classes of every kind and name: each is one row with the name Java gives it, and its counts are exact.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class ClassesTest : public JavaTest {
 protected:
  // Runs shapes.Classes with and without the agent: same output, same status. Opens the recording.
  void record(const Jdk& jdk, const std::string& classes, const std::vector<std::string>& program,
              const std::vector<std::string>& flags = {}) {
    JavaRun java{jdk, flags, std::nullopt, {"shapes.Classes"}, "", 120};
    java.flags.push_back("-Dharness.native=" CLASSACCESS_HARNESS_NATIVE);
    java.program.insert(java.program.end(), program.begin(), program.end());
    ProcessResult plain = run(java);
    expect_done(plain);
    java.agent_options = "classes=\"" + classes + "\",overwrite=on,out=run.db";
    traced_ = run(java);
    expect_done(traced_);
    EXPECT_EQ(without_names(traced_.out), without_names(plain.out)) << jdk;
    EXPECT_EQ(traced_.err, plain.err) << jdk;
    db_.emplace(path("run.db"), true);
    ASSERT_TRUE(db_->is_open()) << db_->error();
    db_->expect_whole();
    EXPECT_EQ(db_->diagnostic("dropped"), 0);
  }

  // Names of hidden classes hold an address; some warnings have a time.
  static std::string without_names(const std::string& out) {
    std::string kept;
    for (const std::string& line : lines_with(out, "")) {
      if (line.rfind("NAME ", 0) != 0 && line.rfind("LAMBDA ", 0) != 0 &&
          line.find("[warning][cds]") == std::string::npos)
        kept += line + "\n";
    }
    return kept;
  }

  static std::string quoted(const std::string& text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
    return out + "'";
  }

  // Accesses by bytecode to a field of a class.
  int64_t count(const std::string& class_name, const std::string& field, const std::string& op,
                const std::string& more = "1") {
    return db_->integer(
        "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN class c ON c.id = a.class_id "
        "JOIN field f ON f.id = a.field_id JOIN thread t ON t.id = a.thread_id "
        "JOIN site s ON s.id = a.site_id WHERE a.part IN ('field', 'static') AND s.kind != 'gc' AND c.name = " +
        quoted(class_name) + " AND f.name = " + quoted(field) + " AND a.op = '" + op + "' AND " + more);
  }

  void expect_touched(const std::string& class_name, int64_t n, int64_t m, const std::string& first = "first",
                      const std::string& second = "second", const std::string& more = "1") {
    EXPECT_EQ(count(class_name, first, "store", more), n) << class_name.substr(0, 80);
    EXPECT_EQ(count(class_name, first, "load", more), 0) << class_name.substr(0, 80);
    EXPECT_EQ(count(class_name, second, "load", more), m) << class_name.substr(0, 80);
    EXPECT_EQ(count(class_name, second, "store", more), 0) << class_name.substr(0, 80);
  }

  static std::string repeat(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; i++) all += text;
    return all;
  }

  ProcessResult traced_;
  std::optional<Database> db_;
};

TEST_F(ClassesTest, NamesOfAnyCharactersAndLength) {
  for (const Jdk& jdk : installed_jdks()) {
    record(jdk, "made.**,Bare", {"names"});
    if (HasFailure()) return;
    expect_touched("made.Größe", 3, 4, "größe", "日本");
    expect_touched("made.𝒜日", 5, 6, "😀", "second");
    expect_touched("Bare", 7, 8);
    expect_touched("made." + repeat("n", 30000), 9, 10, repeat("f", 65535));
    expect_touched("made.deep." + repeat("p.", 200) + "Leaf", 11, 12);
    expect_touched("made.ByThread", 13, 14, "first", "second", "t.name = 'wörker 日本 😀'");
    // Of a thread's name the first 255 bytes are kept, whole characters only: 127 of 2 bytes.
    expect_touched("made.ByLong", 13, 14, "first", "second", "t.name = " + quoted(repeat("ä", 127)));
  }
}

TEST_F(ClassesTest, OneNameInSeveralLoaders) {
  for (const Jdk& jdk : installed_jdks()) {
    record(jdk, "made.Same", {"loaders"});
    if (HasFailure()) return;
    EXPECT_EQ(db_->integer("SELECT count(*) FROM class WHERE name = 'made.Same' AND loader = 'shapes.Definer'"), 2);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM class WHERE name = 'made.Same' AND loader = 'shapes.Definer$Second'"),
              1);
    std::set<std::string> stores, wanted{"10", "20", "30"};
    for (const Row& row : db_->rows("SELECT sum(a.count) FROM access_count a JOIN field f ON f.id = a.field_id WHERE "
                                    "f.name = 'first' GROUP BY a.class_id")) {
      stores.insert(row[0]);
    }
    EXPECT_EQ(stores, wanted) << "one row a class";
    expect_touched("made.Same", 30, 300, "first", "second", "c.loader = 'shapes.Definer$Second'");
    expect_touched("made.Same", 30, 300, "first", "second", "c.loader = 'shapes.Definer'");
  }
}

// A class that lies where an unloaded one was is another class.
TEST_F(ClassesTest, KlassAddressesAreReused) {
  for (const Jdk& jdk : installed_jdks()) {
    const int kRounds = 26;
    for (const std::string collector : {"Serial", "G1"}) {
      record(jdk, "made.Gone*", {"unload", std::to_string(kRounds)},
             {"-XX:+Use" + collector + "GC", "-Xmx32m", "-Xlog:class+load=debug:file=load.log"});
      if (HasFailure()) return;
      for (int i = 0; i < kRounds; i++) {
        std::string name = std::string("made.Gone") + static_cast<char>('A' + i);
        expect_touched(name, i + 1, 2 * i + 1);
        expect_touched(name, i + 1, 2 * i + 1, "first", "second", "s.method = '" + name + ".touch'");
      }
      EXPECT_EQ(db_->integer("SELECT count(*) FROM class WHERE name LIKE 'made.Gone%'"), kRounds);
      // The test is one only if addresses were used twice.
      std::istringstream log(read_text(path("load.log")));
      std::map<std::string, int> loads;
      std::string line, name;
      while (std::getline(log, line)) {
        size_t at = line.find(" klass: 0x");
        if (at != std::string::npos && name.find("made.Gone") != std::string::npos) loads[line.substr(at, 30)]++;
        name = line;
      }
      int reused = 0;
      for (const auto& [klass, times] : loads) reused += times - 1;
      EXPECT_GT(reused, 5) << collector << ": " << loads.size() << " addresses";
    }
  }
}

TEST_F(ClassesTest, KlassAddressIsReusedByAClassOfTheSameName) {
  const int kRounds = 20;
  for (const Jdk& jdk : installed_jdks()) {
    record(jdk, "made.Again", {"again", std::to_string(kRounds)}, {"-XX:+UseSerialGC", "-Xmx32m"});
    if (HasFailure()) return;
    EXPECT_EQ(db_->integer("SELECT count(*) FROM class WHERE name = 'made.Again'"), kRounds) << jdk;
    for (const std::string field : {"even", "odd"}) {
      EXPECT_EQ(count("made.Again", field, "store"), 3 * kRounds / 2) << jdk << " " << field;
      EXPECT_EQ(count("made.Again", field, "load"), 5 * kRounds / 2) << jdk << " " << field;
    }
    EXPECT_EQ(db_->integer("SELECT count(*) FROM (SELECT class_id, count(DISTINCT field_id) AS n FROM access_count "
                           "WHERE part = 'field' GROUP BY class_id HAVING n = 2)"),
              kRounds)
        << "each has two fields of its own";
  }
}

TEST_F(ClassesTest, HiddenClassesAndLambdas) {
  for (const Jdk& jdk : installed_jdks()) {
    record(jdk, "shapes.Veiled*,shapes.Classes$$Lambda*", {"hidden"}, {"-Xint"});
    if (HasFailure()) return;
    std::vector<std::string> name = lines_with(traced_.out, "NAME "), lambda = lines_with(traced_.out, "LAMBDA ");
    ASSERT_EQ(name.size(), 1u);
    ASSERT_EQ(lambda.size(), 1u);
    expect_touched(name[0], 21, 22);
    EXPECT_EQ(db_->integer("SELECT sum(a.count) FROM access_count a JOIN class c ON c.id = a.class_id JOIN field f ON "
                           "f.id = a.field_id WHERE a.op = 'load' AND c.name = " +
                           quoted(lambda[0])),
              40)
        << lambda[0];
  }
}

TEST_F(ClassesTest, RecordsEnumsAndNestedArrays) {
  for (const Jdk& jdk : installed_jdks()) {
    record(jdk, "shapes.Point,shapes.Color,int[],int[][],int[][][],shapes.Point[],shapes.Point[][],shapes.Point[][][]",
           {"kinds"}, {"-Xint"});
    if (HasFailure()) return;
    EXPECT_EQ(count("shapes.Point", "x", "store"), 5);
    EXPECT_EQ(count("shapes.Point", "x", "load"), 30);
    EXPECT_EQ(count("shapes.Point", "y", "load"), 30);
    EXPECT_EQ(count("shapes.Color", "weight", "store"), 2);
    EXPECT_EQ(count("shapes.Color", "weight", "load"), 22);
    EXPECT_EQ(count("shapes.Color", "RED", "load"), 11 + 1) << "11 uses and one in the initialiser";
    auto elements = [&](const std::string& type, const std::string& op, const std::string& method) {
      return db_->integer(
          "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN class c ON c.id = a.class_id JOIN "
          "site s ON s.id = a.site_id WHERE a.part = 'element' AND c.name = '" +
          type + "' AND a.op = '" + op + "' AND s.method = 'shapes.Classes." + method + "'");
    };
    EXPECT_EQ(elements("int[]", "store", "deep"), 24);
    EXPECT_EQ(elements("int[][]", "load", "deep"), 24);
    EXPECT_EQ(elements("int[][][]", "load", "deep"), 24);
    EXPECT_EQ(elements("shapes.Point[]", "store", "kinds"), 5 + 6);
    EXPECT_EQ(elements("shapes.Point[][]", "load", "kinds"), 6);
    EXPECT_EQ(elements("shapes.Point[][][]", "load", "kinds"), 6);
    EXPECT_EQ(elements("shapes.Point[]", "load", "kinds"), 60 + 6);
  }
}

// Headers of other sizes and mark words of other meanings: an object stays what it is while it is hashed,
// locked, waited on and moved.
TEST_F(ClassesTest, HeadersOfEveryShape) {
  const std::vector<std::vector<std::string>> shapes = {
      {"-XX:-UseCompressedClassPointers"},
      {"-XX:ObjectAlignmentInBytes=16"},
      {"-XX:+UseBiasedLocking", "-XX:BiasedLockingStartupDelay=0"},
      {"-XX:+UseHeavyMonitors"},
      {"-XX:+UnlockExperimentalVMOptions", "-XX:LockingMode=1"},
      {"-XX:+UnlockExperimentalVMOptions", "-XX:LockingMode=2"},
      {"-XX:+UnlockDiagnosticVMOptions", "-XX:+UseObjectMonitorTable"},
      {"-XX:+UseCompactObjectHeaders"},
      {"-XX:+UseCompactObjectHeaders", "-XX:ObjectAlignmentInBytes=16"},
      {"-XX:+UseCompactObjectHeaders", "-XX:+UseG1GC"},
      {"-XX:+UseCompactObjectHeaders", "-XX:+UseShenandoahGC"},
      {"-XX:+UseCompactObjectHeaders", "-Xshare:off", "-XX:+UseParallelGC"},
  };
  for (const Jdk& jdk : installed_jdks()) {
    int accepted = 0;
    for (const std::vector<std::string>& shape : shapes) {
      if (!jdk_accepts(jdk, shape)) continue;
      ++accepted;
      std::vector<std::string> flags = shape;
      if (shape.back().rfind("-XX:+Use", 0) != 0 || shape.back().find("GC") == std::string::npos) {
        flags.push_back("-XX:+UseSerialGC");
      }
      record(jdk, "shapes.Subject", {"locks"}, flags);
      if (HasFailure()) return;
      for (int i = 0; i < 3; i++) {
        expect_touched("shapes.Subject", 80, 120, "first", "second", "t.name = 'locker-" + std::to_string(i) + "'");
      }
      expect_touched("shapes.Subject", 8, 8, "first", "second", "t.name = 'main'");
      if (HasFailure()) {
        std::cout << jdk << " with " << shell_line(flags) << "\n";
        return;
      }
    }
    std::cout << jdk << ": " << accepted << " of " << shapes.size() << " accepted\n";
    EXPECT_GE(accepted, 4) << jdk;
  }
}

TEST_F(ClassesTest, RedefinedClassIsTheSameClass) {
  for (const Jdk& jdk : installed_jdks()) {
    record(jdk, "made.Redefined", {"redefine"});
    if (HasFailure()) return;
    EXPECT_EQ(db_->integer("SELECT count(*) FROM class WHERE name = 'made.Redefined'"), 1);
    const std::string by_touch = "s.method = 'made.Redefined.touch'";
    EXPECT_EQ(count("made.Redefined", "first", "store", by_touch), 31);
    EXPECT_EQ(count("made.Redefined", "second", "load", by_touch), 32);
    EXPECT_EQ(count("made.Redefined", "first", "load", by_touch), 33);
    EXPECT_EQ(count("made.Redefined", "second", "store", by_touch), 34);
    EXPECT_EQ(count("made.Redefined", "first", "load"), 33 + 1) << "and one by reflection";
  }
}

}  // namespace
}  // namespace classaccess
