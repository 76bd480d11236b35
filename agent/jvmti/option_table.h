// The options one by one: what the table in options.cc tells option_parser.
// Context: Agent_OnLoad, the control thread, the classaccess command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/jvmti/options.h"

namespace classaccess {

using OptionItems = std::vector<std::string>;  // of a list; else one

struct OptionEntry {
  const char* key;
  const char* values;
  const char* fallback;
  const char* meaning;
  bool is_list;
  std::string (*set)(const OptionItems&, Options*);  // "" or why the value is malformed; null: not in this build
};

// Null: there is none.
const OptionEntry* find_option(std::string_view key);

// "; valid options: ...", the end of a message.
std::string valid_options();

// User text inside a message: quoted, on one line, not too long.
std::string shown(std::string_view text);

}  // namespace classaccess
