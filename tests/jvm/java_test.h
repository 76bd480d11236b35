// The fixture of all tests that run a JVM.
//
// Each test has its own folder, <build>/jvm-failures/<suite>.<test>: working folder of the JVM with
// stdout, stderr, hs_err files and databases. It is removed on success. On failure it stays, and one
// command that repeats the test is printed.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/jvm/jdk.h"
#include "tests/jvm/process.h"

namespace classaccess {

// One JVM start.
struct JavaRun {
  Jdk jdk;
  std::vector<std::string> flags;            // before the class
  std::optional<std::string> agent_options;  // none: without the agent
  std::vector<std::string> program;          // class and arguments
  std::string class_path;                    // empty: the harness
  double limit_seconds = 180;
};

class JavaTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::vector<std::string> command(const JavaRun& run) const;
  ProcessSpec spec(const JavaRun& run) const;
  // Runs it to its end. Whatever happened is in the result; only a timeout is a failure here.
  ProcessResult run(const JavaRun& run);
  ProcessResult run(const ProcessSpec& spec);
  // The same without the agent, which must end well: what the traced run is compared with.
  ProcessResult run_untraced(JavaRun run);

  // Fails with the tail of both streams unless it ended by itself with this status.
  void expect_status(const ProcessResult& result, int status);
  // expect_status(0) and the last line of a harness program.
  void expect_done(const ProcessResult& result);

 private:
  std::string folder_;
};

// libclassaccess.so: environment CLASSACCESS_AGENT, else the one of this build.
std::string agent_library();
std::string harness_classes();

// Lines that start with the prefix, without it.
std::vector<std::string> lines_with(const std::string& text, const std::string& prefix);

// Number in a line `CHECK name=number` of a harness program; -1 if there is none.
int64_t check_value(const std::string& out, const std::string& name);

// Letters, digits and underscores, as names of parametrised tests must be.
std::string test_name(const std::string& text);

}  // namespace classaccess
