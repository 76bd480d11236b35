#include "agent/base/raw_log.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace classaccess {
namespace {

class RawLog : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(0, pipe(pipe_)); }
  void TearDown() override {
    set_log(LogLevel::kWarn, 2);
    close(pipe_[0]);
    if (pipe_[1] >= 0) close(pipe_[1]);
  }
  void log_to_pipe(LogLevel level) { set_log(level, pipe_[1]); }

  // Everything written so far; nothing can be written afterwards.
  std::string written() {
    close(pipe_[1]);
    pipe_[1] = -1;
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(pipe_[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    return text;
  }

 private:
  int pipe_[2] = {-1, -1};
};

TEST_F(RawLog, FormatsWhatItPromises) {
  log_to_pipe(LogLevel::kDebug);
  raw_log(LogLevel::kInfo, "%s %d %d %u %lu %ld %x %lx %p %c %%", "text", 42, -7, 4000000000u, 18446744073709551615ul,
          -9223372036854775807l - 1, 0xbeefu, 0xfeedfacecafebeeful, reinterpret_cast<void*>(0x10), 'z');
  std::string line = written();
  EXPECT_NE(std::string::npos,
            line.find("text 42 -7 4000000000 18446744073709551615 -9223372036854775808 beef feedfacecafebeef 0x10 z %"))
      << line;
  EXPECT_EQ(0u, line.find("classaccess: ")) << line;
  EXPECT_EQ('\n', line.back());
}

TEST_F(RawLog, LevelsBelowTheChosenAreSilent) {
  log_to_pipe(LogLevel::kWarn);
  EXPECT_TRUE(log_enabled(LogLevel::kError));
  EXPECT_TRUE(log_enabled(LogLevel::kWarn));
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  raw_log(LogLevel::kError, "one");
  raw_log(LogLevel::kWarn, "two");
  raw_log(LogLevel::kInfo, "three");
  raw_log(LogLevel::kDebug, "four");
  std::string text = written();
  EXPECT_NE(std::string::npos, text.find("one\n"));
  EXPECT_NE(std::string::npos, text.find("two\n"));
  EXPECT_EQ(std::string::npos, text.find("three"));
  EXPECT_EQ(std::string::npos, text.find("four"));
}

TEST_F(RawLog, LongTextIsCutToOneLine) {
  log_to_pipe(LogLevel::kWarn);
  std::string longer(5000, 'x');
  raw_log(LogLevel::kWarn, "%s", longer.c_str());
  std::string text = written();
  EXPECT_GT(text.size(), 900u);
  EXPECT_LE(text.size(), 1024u);
  EXPECT_EQ(text.size() - 1, text.find('\n'));
}

TEST_F(RawLog, OddFormatsDoNotRunOff) {
  log_to_pipe(LogLevel::kWarn);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-overflow"
  const char* null_text = nullptr;
  raw_log(LogLevel::kWarn, "%s|", null_text);
  raw_log(LogLevel::kWarn, "end %");
  raw_log(LogLevel::kWarn, "end %l");
#pragma GCC diagnostic pop
  EXPECT_NE(std::string::npos, written().find("(null)|\n"));
}

TEST_F(RawLog, KeepsErrno) {
  set_log(LogLevel::kWarn, -1);  // write fails with EBADF
  errno = ENOSPC;
  raw_log(LogLevel::kWarn, "lost");
  EXPECT_EQ(ENOSPC, errno);
}

}  // namespace
}  // namespace classaccess
