// One child process with a hard time limit, its output kept in files.
//
// The child gets its own process group; on the limit the whole group is killed with -9 and the
// result says so. Context: test process, one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace classaccess {

struct ProcessSpec {
  std::vector<std::string> command;  // command[0] is a path
  std::string folder;                // working folder of the child; empty: /tmp, and output is not kept
  double limit_seconds = 180;
  uint64_t file_size_limit = 0;  // RLIMIT_FSIZE in bytes, SIGXFSZ ignored; 0: none
};

struct ProcessResult {
  int status = -1;         // exit status, -1 if a signal ended it
  int signal = 0;          // that signal
  bool timed_out = false;  // killed by the limit
  double seconds = 0;
  std::string out, err;
};

// A child that runs in the background. Destroying a running one kills its group.
class Process {
 public:
  explicit Process(const ProcessSpec& spec);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // True once it has ended; never blocks.
  bool ended();
  // kill -9 to the whole group.
  void kill_now();
  // Waits for the end or the limit, whichever is first.
  ProcessResult wait();

 private:
  void note_end(int wait_status);

  ProcessSpec spec_;
  pid_t pid_ = -1;
  bool ended_ = false;
  double started_ = 0;
  std::string out_path_, err_path_;
  bool temporary_ = false;
  ProcessResult result_;
};

// Start and wait.
ProcessResult run_process(const ProcessSpec& spec);

// The command as one line for a shell.
std::string shell_line(const std::vector<std::string>& command);

std::string read_text(const std::string& path);

// CLOCK_MONOTONIC in seconds, the clock of Java's nanoTime.
double monotonic_seconds();

void sleep_seconds(double seconds);

// Polls `condition` each 10 ms until it is true or the time is over; its last value.
bool wait_until(const std::function<bool()>& condition, double seconds);

}  // namespace classaccess
