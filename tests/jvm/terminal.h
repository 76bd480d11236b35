// A command on a terminal of its own (a pseudo terminal, 24 lines of 100 columns), and what a
// user would see there.
// Context: test process, one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace classaccess {

class Terminal {
 public:
  // The command leads the terminal's session; TERM is `term`.
  Terminal(const std::vector<std::string>& command, const std::string& term);
  ~Terminal();  // kill -9 if it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  pid_t pid() const { return pid_; }
  // Reads until `condition` or the time is over; its last value.
  bool read_until(const std::function<bool()>& condition, double seconds);
  // Reads to the end; the exit status, or -1: a signal, or not within the time.
  int finish(double seconds);
  void type(const std::string& keys);

  // All bytes so far.
  const std::string& raw() const { return raw_; }
  // What stands on the screen: carriage return, new line and "clear to the end of the line" carried out.
  std::vector<std::string> lines() const;

 private:
  bool read_some(int milliseconds);

  pid_t pid_ = -1;
  int fd_ = -1;
  bool ended_ = false;
  std::string raw_;
};

}  // namespace classaccess
