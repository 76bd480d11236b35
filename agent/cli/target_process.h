// What /proc tells about the process that a command is for.
// Context: the classaccess command.
#pragma once

#include <cstdint>
#include <string>

namespace classaccess {

class TargetProcess {
 public:
  explicit TargetProcess(int pid) : pid_(pid), folder_("/proc/" + std::to_string(pid)) {}

  // Empty string, or why it is no JVM that can be talked to: not there, another user's, no
  // HotSpot in it.
  std::string check_jvm() const;

  int pid() const { return pid_; }
  const std::string& folder() const { return folder_; }
  bool alive() const;
  // Field 22 of its stat: with the pid, which process it is. 0: gone.
  uint64_t start_time() const;
  // Its pid as it sees itself (another pid namespace).
  int own_pid() const;
  uint32_t effective_uid() const;
  // A line of /proc/PID/status without its name; empty if there is none.
  std::string status_line(const std::string& name) const;
  // The signal has a handler.
  bool catches(int signal) const;
  // Some thread of it has this name.
  bool has_thread(const std::string& name) const;

 private:
  int pid_;
  std::string folder_;
};

}  // namespace classaccess
