// What only accesses made by probes can get wrong: they are looked at late.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class Probes : public JavaTest {
 protected:
  static int64_t accesses(Database& db, const std::string& class_name, const std::string& field,
                          const std::string& op) {
    return db.integer(
        "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN class c ON c.id = a.class_id "
        "JOIN field f ON f.id = a.field_id WHERE a.part = 'field' AND c.name = '" +
        class_name + "' AND f.name = '" + field + "' AND a.op = '" + op + "'");
  }
  static int64_t stores(Database& db, const std::string& class_name, const std::string& field) {
    return accesses(db, class_name, field, "store");
  }
};

// An object's memory is zeroed before its header is written; looked at later, a field of it may
// look like the Klass of another object that begins there.
TEST_F(Probes, FieldsThatLookLikeAHeader) {
  constexpr int64_t kRounds = 20000;
  for (const Jdk& jdk : installed_jdks()) {
    SCOPED_TRACE(jdk.name);
    JavaRun java{jdk,
                 {"-Xint", "-XX:+UseSerialGC", "-Xmx64m"},
                 "classes=LateKlass$*,overwrite=on,out=" + path("run.db"),
                 {"LateKlass", std::to_string(kRounds)},
                 "",
                 120};
    ProcessResult result = run(java);
    expect_done(result);
    Database db(path("run.db"), true);
    ASSERT_TRUE(db.is_open()) << db.error();
    db.expect_whole();
    for (const char* field : {"mark", "klass", "before"}) {
      EXPECT_EQ(stores(db, "LateKlass$Holder", field), kRounds) << field;
    }
    EXPECT_EQ(stores(db, "LateKlass$Victim", "value"), 1);
    EXPECT_EQ(db.integer("SELECT count(DISTINCT object) FROM access a JOIN class c ON c.id = a.class_id "
                         "WHERE c.name = 'LateKlass$Victim'"),
              1)
        << "no other object is a Victim";
  }
}

// An object's class is known from its header store, which may lie among records of another thread that nobody has
// looked at; and what its maker did before that store is no access to a field, whoever looks first.
// `both`: each of the two makes objects and uses the other's, and so asks for what the other has not drained.
class HandedObjects : public Probes, public ::testing::WithParamInterface<bool> {};

TEST_P(HandedObjects, AreKnownToTheOtherThread) {
  const bool both = GetParam();
  constexpr int64_t kPairs = 4, kObjects = 1000;
  const int64_t all = kPairs * kObjects * (both ? 2 : 1);
  for (const Jdk& jdk : installed_jdks()) {
    SCOPED_TRACE(jdk.name);
    JavaRun java{jdk,
                 {"-Xint", "-Xmx64m"},
                 "classes=Handed$Node,overwrite=on,out=" + path("run.db"),
                 {"Handed", std::to_string(kPairs), std::to_string(kObjects)},
                 "",
                 120};
    if (both) java.program.push_back("both");
    ProcessResult result = run(java);
    expect_done(result);
    Database db(path("run.db"), true);
    ASSERT_TRUE(db.is_open()) << db.error();
    db.expect_whole();
    EXPECT_EQ(db.diagnostic("unresolved"), 0) << db.unresolved_sites();
    EXPECT_EQ(accesses(db, "Handed$Node", "updated", "rmw"), all);
    EXPECT_EQ(accesses(db, "Handed$Node", "stored", "store"), all);
    EXPECT_EQ(accesses(db, "Handed$Node", "stored", "load"), all);
    EXPECT_EQ(accesses(db, "Handed$Node", "updated", "store"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, HandedObjects, ::testing::Bool(),
                         [](const auto& param) { return std::string(param.param ? "EachMakesSome" : "OneMakesAll"); });

// C1 patches a field access whose class was not loaded when it first runs. A second thread that comes
// to do so when the site is probed already must find that it is done.
TEST_F(Probes, C1PatchingFinishedLateFindsItDone) {
  const std::vector<std::string> flags = {"-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:CompileCommand=quiet",
                                          "-XX:CompileCommand=compileonly,LatePatching$User::store*",
                                          "-XX:CompileCommand=compileonly,LatePatching$User::load*"};
  for (const Jdk& jdk : installed_jdks()) {
    SCOPED_TRACE(jdk.name);
    JavaRun java{jdk, flags, "classes=LatePatching$*,overwrite=on,out=" + path("run.db"), {"LatePatching"}, "", 120};
    ProcessResult result = run(java);
    expect_done(result);
    EXPECT_EQ(check_value(result.out, "sum"), 196098);
    EXPECT_EQ(check_value(result.out, "canaries"), 0) << "a store went to twice its offset";
    EXPECT_EQ(result.out.find("WRONG"), std::string::npos) << result.out;
    Database db(path("run.db"), true);
    ASSERT_TRUE(db.is_open()) << db.error();
    db.expect_whole();
    for (const char* field : {"j", "d", "i", "f", "s", "b", "o"}) {
      SCOPED_TRACE(field);
      // Twice 1000 times and once late; and main's, one for each of 14 forms.
      EXPECT_EQ(stores(db, "LatePatching$Target", field), 2001 + 14);
    }
  }
}

}  // namespace
}  // namespace classaccess
