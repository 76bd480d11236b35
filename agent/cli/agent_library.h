// Where libclassaccess.so is.
// Context: the classaccess command.
#pragma once

#include <string>

namespace classaccess {

// The absolute path, or an empty string with *problem: `given` if it is not empty, else the
// environment's CLASSACCESS_AGENT, else beside this command (../lib, or the build tree).
std::string find_agent_library(const std::string& given, std::string* problem);

}  // namespace classaccess
