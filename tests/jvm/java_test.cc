#include "tests/jvm/java_test.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace classaccess {
namespace {

namespace fs = std::filesystem;

std::string tail(const std::string& text) {
  const size_t most = 3000;
  return text.size() <= most ? text : "..." + text.substr(text.size() - most);
}

}  // namespace

void JavaTest::SetUp() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  for (char& c : name) {
    if (c == '/') c = '-';
  }
  folder_ = std::string(CLASSACCESS_BUILD_DIR) + "/jvm-failures/" + name;
  std::error_code ec;
  fs::remove_all(folder_, ec);
  fs::create_directories(folder_);
  ASSERT_FALSE(installed_jdks().empty()) << "no JDK 17 or newer in JAVA_HOME or /usr/lib/jvm";
  ASSERT_TRUE(fs::exists(agent_library())) << agent_library() << " is not built";
  ASSERT_TRUE(fs::exists(harness_classes() + "/held/Plain.class")) << "java-harness is not compiled";
}

void JavaTest::TearDown() {
  std::error_code ec;
  if (!HasFailure()) {
    fs::remove_all(folder_, ec);
    return;
  }
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::cout << "kept:  " << folder_ << "\n"
            << "again: " << fs::read_symlink("/proc/self/exe", ec).string()
            << " --gtest_filter=" << info->test_suite_name() << "." << info->name() << std::endl;
}

std::vector<std::string> JavaTest::command(const JavaRun& run) const {
  std::vector<std::string> words{run.jdk.java()};
  if (run.agent_options) words.push_back("-agentpath:" + agent_library() + "=" + *run.agent_options);
  words.insert(words.end(), run.flags.begin(), run.flags.end());
  words.push_back("-cp");
  words.push_back(run.class_path.empty() ? harness_classes() : run.class_path);
  words.insert(words.end(), run.program.begin(), run.program.end());
  return words;
}

ProcessSpec JavaTest::spec(const JavaRun& run) const {
  ProcessSpec spec;
  spec.command = command(run);
  spec.folder = folder_;
  spec.limit_seconds = run.limit_seconds;
  return spec;
}

ProcessResult JavaTest::run(const JavaRun& run) { return this->run(spec(run)); }

ProcessResult JavaTest::run(const ProcessSpec& spec) {
  std::ofstream(path("command"), std::ios::app) << shell_line(spec.command) << "\n";
  ProcessResult result = run_process(spec);
  EXPECT_FALSE(result.timed_out) << "killed after " << spec.limit_seconds << " s: " << shell_line(spec.command)
                                 << "\nstdout: " << tail(result.out) << "\nstderr: " << tail(result.err);
  return result;
}

ProcessResult JavaTest::run_untraced(JavaRun run) {
  run.agent_options.reset();
  ProcessResult result = this->run(run);
  expect_done(result);
  return result;
}

void JavaTest::expect_status(const ProcessResult& result, int status) {
  if (result.timed_out) return;  // has failed already
  EXPECT_TRUE(result.status == status && result.signal == 0)
      << "expected status " << status << ", got "
      << (result.signal != 0 ? "signal " + std::to_string(result.signal) : std::to_string(result.status))
      << "\nstdout: " << tail(result.out) << "\nstderr: " << tail(result.err);
}

void JavaTest::expect_done(const ProcessResult& result) {
  expect_status(result, 0);
  std::vector<std::string> done = lines_with(result.out, "DONE");
  EXPECT_EQ(done.size(), 1u) << "the program did not reach its end";
}

std::string agent_library() {
  const char* given = std::getenv("CLASSACCESS_AGENT");
  return given != nullptr ? given : CLASSACCESS_AGENT_LIBRARY;
}

std::string harness_classes() { return CLASSACCESS_HARNESS_CLASSES; }

std::vector<std::string> lines_with(const std::string& text, const std::string& prefix) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind(prefix, 0) == 0) lines.push_back(line.substr(prefix.size()));
  }
  return lines;
}

int64_t check_value(const std::string& out, const std::string& name) {
  std::vector<std::string> lines = lines_with(out, "CHECK " + name + "=");
  return lines.size() == 1 ? std::strtoll(lines[0].c_str(), nullptr, 10) : -1;
}

std::string test_name(const std::string& text) {
  std::string name = text;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace classaccess
