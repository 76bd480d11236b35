// The agent's options as long options of the command, and the option string made from them.
// Context: the classaccess command.
#pragma once

#include <map>
#include <string>

namespace classaccess {

// By key, as given; an absent key was not given.
using GivenOptions = std::map<std::string, std::string>;

// key=value,key=value; values that need it are quoted. A relative `out` is made absolute:
// it is meant to be in the folder of the command, not of the JVM.
std::string option_text(const GivenOptions& given);

}  // namespace classaccess
