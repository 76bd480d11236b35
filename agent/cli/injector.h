// The helper of `classaccess run`: follows a process by ptrace until the agent is in a JVM.
// Context: a process of its own, all signals blocked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "agent/cli/loading_code.h"
#include "agent/cli/tracee.h"
#include "classaccess/control.h"

namespace classaccess {

class Injector {
 public:
  Injector(pid_t program, int control_fd, ControlBlock* block, std::string library)
      : tracee_(program), control_fd_(control_fd), block_(block), library_(std::move(library)) {}

  // Empty string or why ptrace refuses.
  std::string seize();
  // Until the JVM is being created, or the program has ended.
  void follow();

 private:
  enum class Next { kGoOn, kDone };
  Next stopped(int status);
  void stop_at_entry();
  Next at_entry();
  // Empty string, or why not; the process stands at the loading code then.
  std::string inject();
  void end_program(const std::string& reason);
  bool let_go_if_created();
  InjectionStage stage() const { return static_cast<InjectionStage>(block_->stage.load(std::memory_order_acquire)); }

  Tracee tracee_;
  int control_fd_;
  ControlBlock* block_;
  std::string library_;
  uint64_t entry_ = 0;      // where the breakpoint is; 0: none
  uint8_t entry_byte_ = 0;  // what it replaces
  uint64_t loading_ = 0;    // the block in the program; 0: not injected
  bool executed_ = false;
};

}  // namespace classaccess
