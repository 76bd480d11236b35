#include "tests/jvm/terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/jvm/process.h"

namespace classaccess {

Terminal::Terminal(const std::vector<std::string>& command, const std::string& term) {
  winsize size = {24, 100, 0, 0};
  pid_ = forkpty(&fd_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  setenv("TERM", term.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  _exit(127);
}

Terminal::~Terminal() {
  if (!ended_ && pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (fd_ >= 0) close(fd_);
}

// False: nobody has the terminal open any more.
bool Terminal::read_some(int milliseconds) {
  pollfd wanted = {fd_, POLLIN, 0};
  if (poll(&wanted, 1, milliseconds) <= 0) return true;
  char bytes[4096];
  ssize_t n = read(fd_, bytes, sizeof(bytes));
  if (n > 0) raw_.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

bool Terminal::read_until(const std::function<bool()>& condition, double seconds) {
  for (double until = monotonic_seconds() + seconds; monotonic_seconds() < until;) {
    if (condition()) return true;
    if (!read_some(20)) break;
  }
  return condition();
}

int Terminal::finish(double seconds) {
  bool open = true;
  for (double until = monotonic_seconds() + seconds; monotonic_seconds() < until;) {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = true;
      // The rest that is on its way.
      for (double rest = monotonic_seconds() + 2; open && monotonic_seconds() < rest;) open = read_some(20);
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    if (open) open = read_some(20);
    if (!open) sleep_seconds(0.01);
  }
  return -1;
}

void Terminal::type(const std::string& keys) { (void)!write(fd_, keys.data(), keys.size()); }

std::vector<std::string> Terminal::lines() const {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < raw_.size(); ++i) {
    std::string& line = lines.back();
    if (raw_.compare(i, 3, "\033[K") == 0) {
      line.resize(std::min(line.size(), column));
      i += 2;
    } else if (raw_[i] == '\r') {
      column = 0;
    } else if (raw_[i] == '\n') {
      lines.emplace_back();
    } else {
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = raw_[i];
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace classaccess
