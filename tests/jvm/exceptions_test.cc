// Faults that are HotSpot's own stay HotSpot's (issue 2, test 3).
#include <gtest/gtest.h>

#include <ostream>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct ExceptionMode {
  Jdk jdk;
  const char* name;
  std::vector<std::string> flags;
  int exceptions;
  bool fast_throw;
};

std::ostream& operator<<(std::ostream& out, const ExceptionMode& mode) { return out << mode.jdk << " " << mode.name; }

std::vector<ExceptionMode> exception_modes() {
  std::vector<ExceptionMode> modes;
  for (const Jdk& jdk : installed_jdks()) {
    modes.push_back({jdk, "c2", {"-XX:-TieredCompilation"}, 1000000, true});
    modes.push_back({jdk, "xint", {"-Xint"}, 5000, false});
    modes.push_back({jdk, "c1", {"-XX:TieredStopAtLevel=1"}, 5000, false});
  }
  return modes;
}

class Exceptions : public JavaTest, public ::testing::WithParamInterface<ExceptionMode> {};

TEST_P(Exceptions, AllDelivered) {
  const ExceptionMode& mode = GetParam();
  const int overflows = 20;
  std::string options = "classes=NullPointers*,java.lang.NullPointerException,events=all,out=" + path("run.db");
  ProcessResult result = run(JavaRun{mode.jdk,
                                     mode.flags,
                                     options,
                                     {"NullPointers", std::to_string(mode.exceptions), std::to_string(overflows)},
                                     "",
                                     240});
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "exceptions"), mode.exceptions);
  EXPECT_EQ(check_value(result.out, "overflows"), overflows);
  if (mode.fast_throw) {
    // Nearly all are the preallocated instance: the site was compiled and the compiler's way taken.
    EXPECT_GT(check_value(result.out, "preallocated"), mode.exceptions * 9 / 10);
  } else {
    EXPECT_EQ(check_value(result.out, "preallocated"), 0);
  }
  if (HasFailure()) return;

  Database db(path("run.db"), true);
  db.expect_whole();
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
  EXPECT_EQ(db.integer("SELECT count(*) FROM access WHERE address BETWEEN 0 AND 65535"), 0)
      << "a null pointer is not an access";
  EXPECT_EQ(db.integer("SELECT count(*) FROM access_count a JOIN class c ON c.id = a.class_id "
                       "WHERE c.name = 'NullPointers$Node' AND a.part = 'field'"),
            0)
      << "no Node was ever made";
  EXPECT_GT(db.integer("SELECT count(*) FROM access_count a JOIN class c ON c.id = a.class_id "
                       "JOIN field f ON f.id = a.field_id WHERE c.name = 'NullPointers' AND f.name = 'nodes'"),
            0)
      << "the array of nulls was loaded";
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  EXPECT_GT(db.diagnostic("chained"), 0) << "HotSpot got its own faults";
}

INSTANTIATE_TEST_SUITE_P(Modes, Exceptions, ::testing::ValuesIn(exception_modes()),
                         [](const auto& param) { return param.param.jdk.name + "_" + param.param.name; });

}  // namespace
}  // namespace classaccess
