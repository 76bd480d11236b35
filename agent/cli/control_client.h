// The command's end of the control file (include/classaccess/control.h).
// Context: the classaccess command, one thread.
#pragma once

#include <string>

#include "agent/cli/target_process.h"
#include "classaccess/control.h"

namespace classaccess {

class ControlClient {
 public:
  explicit ControlClient(int pid) : target_(pid) {}
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // Finds the control file of the process, which must be its own, and locks it.
  enum class Found { kYes, kNone, kProblem };
  Found open(int seconds);
  const std::string& problem() const { return problem_; }

  // Others may give commands from here on; ask() is not allowed any more.
  void unlock();
  // Mapped as long as this lives.
  ControlBlock* block() { return block_; }

  // True: carried out; *answer is what the agent says. False: *answer is the reason.
  bool ask(ControlCommand command, const std::string& arguments, int seconds, std::string* answer);

 private:
  bool wait_for_answer(uint32_t number, int seconds, std::string* reason);

  TargetProcess target_;
  uint64_t started_ = 0;
  int fd_ = -1;
  ControlBlock* block_ = nullptr;
  std::string problem_;
};

}  // namespace classaccess
