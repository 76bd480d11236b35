// Takes an option string, and the option files that it names, to pieces, and sets the options.
// What is wrong is said in one message that names the option and the text.
// Context: Agent_OnLoad, the control thread, the classaccess command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/jvmti/option_table.h"

namespace classaccess {

class OptionParser {
 public:
  // False: error() says why.
  bool take(std::string_view text) { return take_text(text, false); }
  // Sets what was taken. The same.
  bool apply(Options* out);

  const std::string& error() const { return error_; }
  bool help() const { return help_; }

 private:
  // What stands between two commas: KEY=VALUE, VALUE or @FILE. Quotes hide commas and equal
  // signs and are taken off; inside them a backslash takes the next character as it is.
  struct Piece {
    std::optional<std::string> key;
    std::string value;
    bool is_file = false, quoted = false;
  };
  struct Given {
    const OptionEntry* row;
    OptionItems items;
  };

  bool fail(const std::string& reason);
  bool fits_mode(Options* out);
  bool take_text(std::string_view text, bool in_file);
  bool split_piece(std::string_view text, size_t* at, Piece* piece);
  bool take_piece(const Piece& piece);
  bool take_file(const std::string& path);

  std::vector<Given> given_;
  std::string place_;  // "FILE line 3: " inside an option file
  std::string error_;
  bool help_ = false;
};

}  // namespace classaccess
