// HotSpot's attach protocol: has a running JVM load an agent library.
//
// Facts (17 to 25): the JVM opens a socket /tmp/.java_pidPID in its own mount and pid
// namespace, when it gets SIGQUIT while a file .attach_pidPID lies in its working folder or in
// /tmp, owned by its effective user or root. A request is "1", "load", the library, "true"
// (the path is absolute) and the options, each ended by a zero byte; each at most 1,024 bytes.
// The answer is a line with the command's status and then what the command printed,
// "return code: N" being what Agent_OnAttach returned; the JVM then closes. Without a handler
// for SIGQUIT (-Xrs) the signal would end the process: not sent.
// Context: the classaccess command.
#pragma once

#include <string>

#include "agent/cli/target_process.h"

namespace classaccess {

// Empty string: loaded, and Agent_OnAttach has returned 0. Else the reason.
std::string attach_library(const TargetProcess& target, const std::string& library, const std::string& options);

}  // namespace classaccess
