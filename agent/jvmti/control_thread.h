// The agent's end of the control file: a thread that sleeps until the `classaccess` command
// asks for something (include/classaccess/control.h).
//
// It is no Java thread, blocks all signals but those of its own faults, and attaches to the
// VM, as a daemon, only while it starts or ends a recording.
// Context: open: Agent_OnLoad, OnAttach. start: the VM is live. close: VMDeath.
#pragma once

#include <string>

#include "classaccess/control.h"

namespace classaccess {

struct ControlAnswer {
  bool ok = false;
  std::string text;
};

class ControlThread {
 public:
  // On the control thread. A kDetach that is answered with `ok` is the thread's last request.
  using Carry = ControlAnswer (*)(ControlCommand command, const std::string& arguments);

  // Makes the control file, if there is none yet. Empty string or the reason.
  std::string open();
  // The control file that `classaccess run` has made; taken over by open().
  bool adopt(const char* path);
  ControlBlock* block() { return block_; }

  // Starts the thread, if it does not run. Empty string or the reason.
  std::string start(Carry carry);
  // The process ends, or the start failed: no request is taken any more. Does not wait.
  void close();
  // Takes the file away again if the thread does not run: a start that failed.
  void close_if_idle() {
    if (!running_ && block_ != nullptr) unmap();
  }

  // The control file of another copy of the library is mapped in this process.
  bool other_in_process() const;

  // The VM ends, nothing more is recorded: a live line is taken away, for which this waits a moment.
  void end_live_line();

 private:
  static void* thread_main(void* self);
  void serve();
  void unmap();
  static void unmap_unused(ControlBlock* block);

  ControlBlock* block_ = nullptr;
  int fd_ = -1;
  bool running_ = false;
  std::atomic<bool> closed_{false};
  Carry carry_ = nullptr;
};

extern ControlThread g_control;

}  // namespace classaccess
