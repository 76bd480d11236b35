// Other programs started by an observed one, by each of the JDK's mechanisms, and forks in native code: the children
// do what they do without the agent, and the recording goes on.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class Children : public JavaTest {
 protected:
  void compare(const Jdk& jdk, std::vector<std::string> flags, const std::string& what, const std::string& options) {
    flags.insert(flags.end(), {"-Xint", "-XX:+UseSerialGC", "-Xmx64m", "--enable-native-access=ALL-UNNAMED",
                               "-Dharness.native=" CLASSACCESS_HARNESS_NATIVE});
    JavaRun plain{jdk, flags, std::nullopt, {"Children", what}, "", 120};
    ProcessResult told = run(plain);
    expect_done(told);
    std::string name = path(test_name(jdk.name + shell_line(flags) + what + options) + ".db");
    JavaRun traced = plain;
    traced.agent_options = "classes=Children,events=off,out=" + name + options;
    ProcessResult result = run(traced);
    expect_done(result);
    if (HasFailure()) return;
    EXPECT_EQ(result.out, told.out);
    EXPECT_EQ(lines_with(result.err, "").size(), lines_with(told.err, "").size()) << result.err;
    Database db(name, true);
    ASSERT_TRUE(db.is_open()) << db.error();
    db.expect_whole();
    EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
    EXPECT_EQ(db.diagnostic("dropped"), 0);
    int64_t ticks = check_value(result.err, "ticks");
    EXPECT_GT(ticks, 100);
    EXPECT_EQ(db.integer("SELECT sum(a.count) FROM access_count a JOIN thread t ON t.id = a.thread_id "
                         "JOIN field f ON f.id = a.field_id "
                         "WHERE t.name = 'ticker' AND f.name = 'ticks' AND a.op = 'store'"),
              ticks);
  }
};

TEST_F(Children, AreUntouchedByEachLaunchMechanism) {
  for (const Jdk& jdk : installed_jdks()) {
    for (const char* mechanism : {"POSIX_SPAWN", "VFORK", "FORK"}) {
      SCOPED_TRACE(jdk.name + " " + mechanism);
      std::string options =
          std::string(mechanism) == "FORK" && jdk.home == newest_jdk().home ? ",protect=mprotect" : "";
      compare(jdk, {std::string("-Djdk.lang.Process.launchMechanism=") + mechanism}, "processes", options);
      if (HasFailure()) return;
    }
  }
}

TEST_F(Children, LiveOnAfterAForkInNativeCode) {
  for (const Jdk& jdk : installed_jdks()) {
    for (const char* options : {"", ",protect=mprotect", ",twin=off"}) {
      if (!full_run() && *options != 0 && jdk.home == oldest_jdk().home) continue;
      SCOPED_TRACE(jdk.name + options);
      compare(jdk, {}, "fork", options);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace classaccess
