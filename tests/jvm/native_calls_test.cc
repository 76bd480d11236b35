// calls= for native functions in a JVM: the program does what it did, and every call that begins ends.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

struct NativeMode {
  Jdk jdk;
  std::string flag, options, name;
};
std::ostream& operator<<(std::ostream& out, const NativeMode& mode) { return out << mode.name; }

class NativeCallsInJvm : public JavaTest, public ::testing::WithParamInterface<NativeMode> {};

TEST_P(NativeCallsInJvm, ProgramIsUnchangedAndCallsAreBalanced) {
  const NativeMode& mode = GetParam();
  // Where each access traps.
  const bool slow = mode.options.find("probes=off") != std::string::npos;
  const int rounds = slow ? 2 : 20;
  JavaRun java{mode.jdk, {mode.flag}, std::nullopt, {"NativeTimes", std::to_string(rounds)}, "", 120};
  const ProcessResult plain = run(java);
  expect_done(plain);
  java.agent_options = "out=t.db,overwrite=on,calls=libzip.so!*,libjvm.so!JVM_*,libz.so.1!*," + mode.options;
  const ProcessResult traced = run(java);
  expect_done(traced);
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err.find("no function of a loaded library matched `libjvm"), std::string::npos) << traced.err;
  Database db(path("t.db"), true);
  db.expect_whole();
  auto calls = [&](const std::string& name) {
    return db.integer(
        "SELECT coalesce(sum(s.count), 0) FROM call_stat s JOIN function f ON f.id = s.function_id WHERE f.name = '" +
        name + "'");
  };
  constexpr int kThreads = 4;
  EXPECT_GE(calls("Java_java_util_zip_Deflater_deflateBytesBytes"), kThreads * rounds);
  EXPECT_GE(calls("Java_java_util_zip_Inflater_inflateBytesBytes"), kThreads * rounds);
  EXPECT_GE(calls("JVM_MonitorWait"), kThreads * rounds);
  EXPECT_GT(db.integer("SELECT count(*) FROM function WHERE library = 'libzip.so' AND loaded = 'later'") +
                db.integer("SELECT count(*) FROM function WHERE library = 'libzip.so' AND loaded = 'already'"),
            0);
  EXPECT_GT(db.integer("SELECT coalesce(sum(total_ns), 0) FROM call_stat"), 0);
  EXPECT_EQ(db.text("SELECT name || ': ' || refused FROM function WHERE refused LIKE 'no free memory%' LIMIT 1"), "");
  EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE ended_by != 'return'"), 0);
  // Nothing that was entered is left open.
  EXPECT_EQ(db.integer("SELECT count(*) FROM call WHERE end_ns < start_ns"), 0);
}

std::vector<NativeMode> native_modes() {
  std::vector<NativeMode> modes;
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    const std::string version = jdk.name + "_";
    modes.push_back({jdk, "-Xint", "mode=off", version + "off_xint"});
    modes.push_back({jdk, "-Xmixed", "mode=off", version + "off"});
    modes.push_back({jdk, "-Xmixed", "mode=access,events=off", version + "access"});
    modes.push_back({jdk, "-XX:+UseSerialGC", "mode=access,probes=off,classes=NativeTimes", version + "access_traps"});
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(Jvm, NativeCallsInJvm, ::testing::ValuesIn(native_modes()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
