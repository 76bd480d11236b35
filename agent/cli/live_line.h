// The live line of `run` and `attach`: what the recording has so far, redrawn twice a second.
//
// Drawn on standard error if that is a terminal which knows how to clear a line, never from the
// background. It is one line, never wider than the terminal, without colour. Who else writes
// there takes it away first, as far as that can be seen: agent/base/terminal_line.h.
// Context: the classaccess command, one thread.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/cli/target_process.h"
#include "classaccess/control.h"

namespace classaccess {

struct LiveFigures {
  uint64_t accesses = 0, page_touches = 0, calls = 0;
  double per_second = 0;  // of the first of these that is not 0
  uint64_t probes = 0;
  uint64_t database_bytes = 0;
};

// At most `width` characters; what has no room is left out, the last first.
std::string live_text(const LiveFigures& figures, size_t width);

class LiveLine {
 public:
  // `block` of that process stays mapped.
  LiveLine(ControlBlock* block, int pid);

  // Standard error takes a line.
  static bool possible();

  enum class End {
    kEnded,        // the JVM is ending, or one recording has ended if that was asked for
    kGone,         // the process has vanished without a word: the line was left, a prompt may stand there
    kInterrupted,  // *interrupted
    kNotHere,      // somebody else draws, or the terminal is gone
  };
  End watch(bool one_recording, const volatile sig_atomic_t* interrupted);

 private:
  bool claim();
  bool draw();
  void take_away();
  End leave(End end);
  double rate(uint64_t count, double now);

  ControlBlock* block_;
  TargetProcess target_;
  uint64_t started_;
  std::vector<std::pair<double, uint64_t>> samples_;  // of the last seconds: time, count
};

}  // namespace classaccess
