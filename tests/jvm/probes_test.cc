// What only accesses made by probes can get wrong: they are looked at late.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class Probes : public JavaTest {
 protected:
  static int64_t stores(Database& db, const std::string& class_name, const std::string& field) {
    return db.integer(
        "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN class c ON c.id = a.class_id "
        "JOIN field f ON f.id = a.field_id WHERE a.op = 'store' AND a.part = 'field' AND c.name = '" +
        class_name + "' AND f.name = '" + field + "'");
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

}  // namespace
}  // namespace classaccess
