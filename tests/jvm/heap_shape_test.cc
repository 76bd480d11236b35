// Heaps of other sizes and parts of the heap: what is closed, and that the start is not refused.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct Shape {
  const char* name;
  std::vector<std::string> flags;
};

class HeapShape : public JavaTest, public ::testing::WithParamInterface<Shape> {};

// G1 reserves a table of 32 MB and commits it before the heap: with -Xmx32m it was taken for the
// heap, and the program ran untraced.
TEST_P(HeapShape, IsTraced) {
  for (const Jdk& jdk : installed_jdks()) {
    std::string db = path(jdk.name + ".db");
    ProcessResult result = run(JavaRun{jdk, GetParam().flags, "out=" + db, {"Quiet"}, "", 120});
    expect_status(result, 7);  // Quiet's own
    EXPECT_EQ(result.err.find("untraced"), std::string::npos) << result.err;
    Database database(db, true);
    ASSERT_TRUE(database.is_open()) << jdk.name << ": " << database.error();
    EXPECT_GT(database.diagnostic("traps"), 1000) << jdk.name;
    EXPECT_EQ(database.diagnostic("dropped"), 0) << jdk.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, HeapShape,
    ::testing::Values(Shape{"G1_32m", {"-XX:+UseG1GC", "-Xmx32m"}}, Shape{"G1_16m", {"-XX:+UseG1GC", "-Xmx16m"}},
                      Shape{"Serial_8m", {"-XX:+UseSerialGC", "-Xmx8m"}},
                      Shape{"Serial_240m", {"-XX:+UseSerialGC", "-Xmx240m"}},
                      Shape{"Parallel_3g", {"-XX:+UseParallelGC", "-Xmx3g"}},
                      Shape{"G1_40g", {"-XX:+UseG1GC", "-Xms64m", "-Xmx40g"}},
                      Shape{"Serial_pretouch", {"-XX:+UseSerialGC", "-Xmx64m", "-XX:+AlwaysPreTouch"}}),
    [](const auto& shape) { return std::string(shape.param.name); });

class HeapScope : public JavaTest {
 protected:
  int64_t traps(const Jdk& jdk, const std::string& collector, const std::string& scope) {
    std::string db = path(jdk.name + collector + scope + ".db");
    ProcessResult result = run(JavaRun{jdk,
                                       {"-XX:+Use" + collector + "GC", "-Xmx64m", "-Xint"},
                                       "classes=held.**,events=off,heap=" + scope + ",out=" + db,
                                       {"counts.ExactCounts", "1", "1", "4"},
                                       "",
                                       120});
    expect_status(result, 0);
    Database database(db, true);
    EXPECT_TRUE(database.is_open()) << database.error();
    return database.is_open() ? database.diagnostic("traps") : 0;
  }
};

TEST_F(HeapScope, OldAndYoungAreParts) {
  for (const std::string collector : {"Serial", "Parallel", "G1"}) {
    int64_t all = traps(newest_jdk(), collector, "all");
    int64_t old = traps(newest_jdk(), collector, "old");
    int64_t young = traps(newest_jdk(), collector, "young");
    EXPECT_GT(old, 0) << collector;
    EXPECT_GT(young, 0) << collector;
    EXPECT_LT(old, all) << collector;
    EXPECT_LT(young, all) << collector;
  }
}

}  // namespace
}  // namespace classaccess
