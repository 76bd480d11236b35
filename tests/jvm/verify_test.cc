// The verifying build of the agent: each object the resolver names is checked by parsing the heap at the next pause
// (agent/jvmti/heap_verify.h). Not one may differ.
#include <cstdlib>
#include <iostream>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

class Verify : public JavaTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    setenv("CLASSACCESS_AGENT", CLASSACCESS_VERIFY_LIBRARY, 1);
    JavaTest::SetUp();
  }

  // `least`: accesses that must have been verified.
  void expect_agreement(const std::vector<std::string>& program, const std::string& class_path, int64_t least,
                        double limit_seconds) {
    JavaRun java{GetParam().jdk, GetParam().flags(), "out=" + path("run.db") + ",events=off",
                 program,        class_path,         limit_seconds};
    expect_status(run(java), 0);
    if (HasFailure()) return;
    Database db(path("run.db"), true);
    EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
    int64_t verified = db.diagnostic("verified"), accesses = db.diagnostic("accesses");
    std::cout << GetParam() << ": " << accesses << " accesses, " << verified << " verified, "
              << db.diagnostic("disagreements") << " disagreements, " << db.diagnostic("unverified") << " unverified, "
              << db.diagnostic("unresolved") << " unresolved" << std::endl;
    EXPECT_EQ(db.diagnostic("disagreements"), 0);
    EXPECT_GE(verified, least);
    // The rest are initialising stores before the Klass word, which no object can be told for at that time.
    EXPECT_GE(static_cast<double>(verified), 0.9 * static_cast<double>(accesses));
    EXPECT_LE(static_cast<double>(db.diagnostic("unverified")), 0.001 * static_cast<double>(accesses));
    EXPECT_LE(static_cast<double>(db.diagnostic("unresolved")), 0.0001 * static_cast<double>(accesses))
        << db.unresolved_sites();
  }
};

TEST_P(Verify, HarnessObjectsAreWhatTheHeapSays) {
  expect_agreement({"counts.ExactCounts", "4", "20", "4", "silent"}, "", 1000000, 300);
}

// Ten minutes: scripts/nightly verify.
TEST_P(Verify, JavacObjectsAreWhatTheHeapSays) {
  if (!full_run()) GTEST_SKIP() << "takes minutes: CLASSACCESS_FULL=1 or scripts/nightly verify";
  expect_agreement({"-m", "jdk.compiler/com.sun.tools.javac.Main", "-g", "-d", path("classes"),
                    std::string(CLASSACCESS_HARNESS_SOURCES) + "/JavacInput.java"},
                   "", 10000000, 3600);
}

TEST_P(Verify, H2ObjectsAreWhatTheHeapSays) {
  if (!full_run()) GTEST_SKIP() << "takes minutes: CLASSACCESS_FULL=1 or scripts/nightly verify";
  const std::string jar = "/usr/share/java/h2.jar";
  if (!file_exists(jar)) GTEST_SKIP() << jar << " is not there: apt-get install libh2-java";
  expect_agreement({"SqlScript"}, harness_classes() + ":" + jar, 10000000, 3600);
}

std::vector<Mode> verify_modes() {
  std::vector<Mode> modes;
  for (const Jdk& jdk : installed_jdks()) {
    for (Collector collector : {Collector::kSerial, Collector::kParallel, Collector::kG1}) {
      // CI: each collector once.
      bool oldest = jdk.home == oldest_jdk().home;
      if (!full_run() && oldest != (collector == Collector::kParallel)) continue;
      modes.push_back(Mode{jdk, Execution::kDefault, collector, true, false, 4});
    }
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(Modes, Verify, ::testing::ValuesIn(verify_modes()),
                         [](const auto& param) { return param.param.name(); });

}  // namespace
}  // namespace classaccess
