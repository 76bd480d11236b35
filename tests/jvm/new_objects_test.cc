// The stores that make an object are all counted where they are not resolved one by one
// (agent/fault/probed_again.cc). java-harness/NewObjects.
#include <gtest/gtest.h>

#include <string>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class NewObjects : public JavaTest {
 protected:
  static constexpr int64_t kCount = 30000;

  // Stores that made objects of the class, by what the instruction looks like in every kind of code.
  static int64_t made(Database& db, const std::string& class_name, const std::string& instruction) {
    return db.integer(
        "SELECT sum(a.count) FROM access_count a JOIN class c ON c.id = a.class_id JOIN site s ON s.id = a.site_id "
        "WHERE a.part = 'init' AND a.op = 'store' AND c.name = 'NewObjects$" +
        class_name + "' AND s.instruction " + instruction);
  }
};

TEST_F(NewObjects, AreCountedWithoutBeingResolvedEach) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    for (const std::vector<std::string>& flags :
         {std::vector<std::string>{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"},
          std::vector<std::string>{"-XX:-TieredCompilation", "-XX:+UseSerialGC"},
          std::vector<std::string>{"-XX:-TieredCompilation", "-XX:+UseG1GC", "-XX:-UseCompressedOops", "-Xmn4m"},
          std::vector<std::string>{"-XX:-TieredCompilation", "-XX:+UseShenandoahGC"}}) {
      SCOPED_TRACE(jdk.name + " " + flags[0] + " " + flags[1]);
      JavaRun java{jdk, flags, "classes=NewObjects*,out=out.db,overwrite=on,events=off",
                   {"NewObjects", std::to_string(kCount)}, "", 120};
      java.flags.push_back("-XX:CompileCommand=dontinline,NewObjects::make");
      expect_done(run(java));
      Database db(path("out.db"), true);
      EXPECT_EQ(db.integer("SELECT value FROM diagnostic WHERE name = 'unresolved'"), 0);
      for (const std::string name : {"Point", "Cell", "Point[]", "Cell[]"}) {
        const int64_t objects = kCount + (name == "Point" ? 2 : 1);
        EXPECT_EQ(made(db, name, "LIKE 'mov dword ptr [% + 8], %'"), objects) << "Klass words of " << name;
        // The few that the VM makes when a TLAB is full are cleared by memset before.
        const int64_t marks = made(db, name, "LIKE 'mov qword ptr [%], %' AND s.instruction NOT LIKE '%+%'");
        EXPECT_GE(marks, objects) << "mark words of " << name;
        EXPECT_LT(marks, objects + objects / 50) << "mark words of " << name;
      }
      const int64_t recorded = db.integer("SELECT value FROM diagnostic WHERE name = 'recorded'");
      EXPECT_LT(recorded, 8 * kCount) << "they were resolved, each of at least ten stores a turn";
    }
  }
}

}  // namespace
}  // namespace classaccess
