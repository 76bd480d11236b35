// `classaccess run`: the program is started stopped, and the agent put into it.
//
// The command becomes the program itself (exec), so its pid, signals, terminal and exit status
// are the JVM's. Before, it starts a helper, no child of it, which seizes it by ptrace, stops it
// at the program's entry address, maps the block with the loading code (loading_code.h), and
// lets go when JNI_CreateJavaVM is called. Programs that only execute others (scripts, java's
// launcher starting itself anew) are followed until a JVM's launcher is there; their children
// are not.
// Context: the classaccess command.
#pragma once

#include <string>
#include <vector>

namespace classaccess {

// With `progress` the helper stays and draws the live line (live_line.h) until the JVM ends.
// Returns only if it fails: the reason.
std::string launch(const std::vector<std::string>& command, const std::string& library, const std::string& options,
                   bool progress);

}  // namespace classaccess
