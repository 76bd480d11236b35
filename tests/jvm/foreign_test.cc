// System calls on heap segments (Linker.Option.critical, JDK 22 and later).
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class Foreign : public JavaTest {
 protected:
  // Compiled with the JDK that runs it: the harness's own may be too old. Empty: a failure.
  std::string compile(const Jdk& jdk) {
    ProcessSpec javac;
    javac.command = {jdk.home + "/bin/javac", "-d", path("classes"),
                     std::string(CLASSACCESS_HARNESS_SOURCES) + "/foreign/CriticalCalls.java"};
    javac.folder = folder();
    ProcessResult result = run(javac);
    expect_status(result, 0);
    return HasFailure() ? "" : path("classes");
  }

  void expect_calls(const std::string& protect) {
    const Jdk& jdk = newest_jdk();
    if (jdk.major < 22) GTEST_SKIP() << "no JDK 22 or newer is installed";
    if (!file_exists(jdk.home + "/bin/javac")) GTEST_SKIP() << jdk << " has no javac";
    std::string classes = compile(jdk);
    if (classes.empty()) return;
    JavaRun java{jdk,     {"-Xmx64m", "--enable-native-access=ALL-UNNAMED"},
                 {},      {"foreign.CriticalCalls", "file.bin"},
                 classes, 240};
    ProcessResult plain = run(java);
    expect_done(plain);
    java.agent_options = "classes=byte[],threads=caller,events=all,protect=" + protect + ",out=out.db";
    ProcessResult traced = run(java);
    expect_done(traced);
    EXPECT_EQ(traced.out, plain.out);
    EXPECT_EQ(lines_with(traced.out, "CHECK ").size(), 17u);
    if (HasFailure()) return;
    Database db(path("out.db"), true);
    db.expect_whole();
    EXPECT_EQ(db.integer("SELECT count(*) FROM access WHERE class_id IS NULL AND size = 10000"), 0);
    // What the kernel touched: each run of bytes one access of the array, from its first index on.
    auto runs = [&](const char* op, int index, int bytes) {
      return db.integer(
          "SELECT count(*) FROM access a JOIN site s ON s.id = a.site_id JOIN class c ON c.id = a.class_id "
          "WHERE c.name = 'byte[]' AND a.part = 'element' AND s.kind = 'stub' AND a.op = '" +
          std::string(op) + "' AND a.element = " + std::to_string(index) + " AND a.size = " + std::to_string(bytes));
    };
    EXPECT_EQ(runs("load", 0, 10000), 5) << "write, pwrite, send, sendto, fwrite";
    EXPECT_EQ(runs("store", 0, 10000), 5) << "read, pread, recv, recvfrom, fread";
    EXPECT_EQ(runs("store", 5000, 5000), 1) << "pread into a part";
    EXPECT_GE(db.diagnostic("kernel_runs"), 14);
  }
};

TEST_F(Foreign, SystemCallsOnHeapSegmentsSucceed) { expect_calls("auto"); }

TEST_F(Foreign, SystemCallsOnHeapSegmentsSucceedWithMprotect) {
  if (!full_run()) GTEST_SKIP() << "CLASSACCESS_FULL=1 runs it: the linker's start-up traps a million times";
  expect_calls("mprotect");
}

}  // namespace
}  // namespace classaccess
