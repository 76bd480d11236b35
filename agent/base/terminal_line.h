// Keeps the live line of `classaccess run` and `attach` (agent/cli/live_line.h) apart from what
// this process writes to the same terminal: before a write the line is taken away, and it is not
// drawn again until the program's text ends in an end of line.
//
// The terminal itself cannot be asked where its cursor is: it would answer in the program's
// input. So the writes of the program are looked at (jvmti/heap_system_calls); output by other
// ways, of child processes, and what the user types, is not seen.
// Context: any thread and signal handler. errno is kept. With nobody who draws: one load.
#pragma once

#include <cstddef>

#include "classaccess/control.h"

namespace classaccess {

// The line of this process's control file. Null: none; true when nobody uses the old one any
// more, which the caller may then unmap.
bool set_terminal_line(TerminalLine* line);
// In a forked child, which has not inherited it.
void forget_terminal_line();

// Before something is written to fd.
void before_output(int fd);
// After the program has written these bytes to fd.
void after_output(int fd, const void* bytes, size_t count);

}  // namespace classaccess
