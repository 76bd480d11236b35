#include "agent/jvmti/option_parser.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <fstream>

namespace classaccess {

bool OptionParser::apply(Options* out) {
  for (const Given& option : given_) {
    std::string reason = option.row->set(option.items, out);
    if (!reason.empty()) return fail("option '" + std::string(option.row->key) + "': " + reason);
  }
  return fits_mode(out);
}

bool OptionParser::fail(const std::string& reason) {
  error_ = place_ + reason + valid_options();
  return false;
}

// An option that would change nothing is a mistake of the user's.
bool OptionParser::fits_mode(Options* out) {
  struct Place {
    const char* key;
    bool access, pages, off;
    const char* where;
  };
  constexpr Place kPlaces[] = {{"page", false, true, false, "mode=pages"},
                               {"window", false, true, false, "mode=pages"},
                               {"classes", true, false, false, "mode=access"},
                               {"values", true, false, false, "mode=access"},
                               {"probes", true, false, false, "mode=access"},
                               {"events", true, false, true, "mode=access and mode=off"},
                               {"calls", true, false, true, "mode=access and mode=off"},
                               {"heap", true, true, false, "mode=access and mode=pages"},
                               {"protect", true, true, false, "mode=access and mode=pages"},
                               {"twin", true, true, false, "mode=access and mode=pages"}};
  const bool off = out->mode == Mode::kOff;
  for (const Given& option : given_) {
    for (const Place& place : kPlaces) {
      if (std::string_view(place.key) != option.row->key) continue;
      const bool fits = off ? place.off : out->mode == Mode::kPages ? place.pages : place.access;
      if (!fits) return fail("option '" + std::string(place.key) + "' is for " + place.where + " only");
    }
  }
  if (off && out->java_calls.empty() && out->native_calls.empty() && !out->manual) {
    return fail("option 'mode': 'off' without calls= would record nothing");
  }
  if (out->mode != Mode::kAccess) out->probes = false;
  return true;
}

bool OptionParser::take_text(std::string_view text, bool in_file) {
  if (text.empty()) return true;
  for (size_t at = 0;;) {
    Piece piece;
    if (!split_piece(text, &at, &piece)) return false;
    if (piece.value.empty() && piece.is_file) return fail("'@' names no option file: write @FILE");
    if (piece.value.empty())
      return fail(piece.key ? "option " + shown(*piece.key) + ": the value is empty"
                            : "an empty piece in " + shown(text));
    if (piece.is_file && in_file) return fail("@FILE inside an option file: " + shown(piece.value));
    if (!(piece.is_file ? take_file(piece.value) : take_piece(piece))) return false;
    if (at == text.size()) return true;
    ++at;  // the comma
  }
  return true;
}

// Leaves *at on the comma behind the piece, or at the end.
bool OptionParser::split_piece(std::string_view text, size_t* at, Piece* piece) {
  size_t start = *at;
  if (*at < text.size() && text[*at] == '@') {
    piece->is_file = true;
    ++*at;
  } else if (*at < text.size() && text[*at] != '"') {
    size_t end = std::min(text.find_first_of(",=", *at), text.size());
    if (end < text.size() && text[end] == '=') {
      piece->key = text.substr(*at, end - *at);
      *at = end + 1;
    }
  }
  if (*at < text.size() && text[*at] == '"') {
    piece->quoted = true;
    for (++*at; *at < text.size() && text[*at] != '"'; ++*at) {
      if (text[*at] == '\\' && *at + 1 < text.size()) ++*at;
      piece->value += text[*at];
    }
    if (*at == text.size()) return fail("a quote is not closed in " + shown(text.substr(start)));
    ++*at;
    if (*at < text.size() && text[*at] != ',')
      return fail("text behind the closing quote in " + shown(text.substr(start)));
    return true;
  }
  size_t end = std::min(text.find(',', *at), text.size());
  piece->value = text.substr(*at, end - *at);
  *at = end;
  return true;
}

bool OptionParser::take_piece(const Piece& piece) {
  if (!piece.key) {
    bool continues = !given_.empty() && given_.back().row->is_list;
    if (continues) {
      given_.back().items.push_back(piece.value);
      return true;
    }
    if (piece.value == "help" && !piece.quoted) return help_ = true;
    if (given_.empty()) return fail("unknown option " + shown(piece.value) + " (an option is KEY=VALUE)");
    return fail("option '" + std::string(given_.back().row->key) + "' takes one value, " + shown(piece.value) +
                " follows it (quote a value that has a comma)");
  }
  if (piece.key->empty()) {
    return fail("there is no option in front of the = in " + shown("=" + piece.value) + ": write KEY=VALUE");
  }
  if (*piece.key == "help") return fail("option 'help' takes no value, not " + shown(piece.value));
  const OptionEntry* row = find_option(*piece.key);
  if (row == nullptr) return fail("unknown option " + shown(*piece.key));
  if (row->set == nullptr) return fail("option '" + *piece.key + "' is not available in this build");
  for (const Given& option : given_) {
    if (option.row == row) return fail("option '" + *piece.key + "' is given twice");
  }
  given_.push_back({row, {piece.value}});
  return true;
}

bool OptionParser::take_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail("cannot read option file " + shown(path) + ": " + strerror(errno));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    place_ = "option file " + shown(path) + " line " + std::to_string(number) + ": ";
    size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    if (line.find('=') == std::string::npos && line != "help") return fail(shown(line) + " is no option (KEY=VALUE)");
    if (!take_text(line, true)) return false;
  }
  place_.clear();
  if (file.bad()) return fail("cannot read option file " + shown(path));
  return true;
}

}  // namespace classaccess
