#include "agent/jvmti/options.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "agent/calls/java/call_patterns.h"
#include "agent/heap/class_pattern.h"
#include "agent/jvmti/option_parser.h"
#include "agent/jvmti/option_table.h"

namespace classaccess {
namespace {

using Items = OptionItems;

constexpr uint32_t kMaxWindow = 16384;  // PageModel::kMaxWindow

std::string not_one_of(const std::string& value, const char* choices) {
  return shown(value) + " is not one of " + choices;
}

bool parse_number(std::string_view text, int base, uint64_t* to) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// --- one function an option: "" or the reason the value is malformed ---

std::string set_switch(const std::string& value, bool* to) {
  if (value != "on" && value != "off") return not_one_of(value, "on, off");
  *to = value == "on";
  return "";
}

// A quoted list arrives as one item; no name has a comma.
Items without_commas(const Items& items) {
  Items pieces;
  for (const std::string& item : items) {
    for (size_t from = 0; from <= item.size();) {
      size_t comma = std::min(item.find(',', from), item.size());
      pieces.push_back(item.substr(from, comma - from));
      from = comma + 1;
    }
  }
  return pieces;
}

std::string set_classes(const Items& items, Options* out) {
  out->classes = without_commas(items);
  auto patterns = std::make_unique<ClassPatterns>();
  for (const std::string& pattern : out->classes) {
    std::string reason = patterns->add(pattern);
    if (!reason.empty()) return shown(pattern) + " is no class pattern: " + reason;
  }
  return "";
}

std::string set_calls(const Items& items, Options* out) {
  CallPatterns patterns;
  bool any = false;
  for (const std::string& item : without_commas(items)) {
    const bool native = is_native_call_item(item);
    any |= !item.starts_with('!');
    std::string reason = native && (item.ends_with('!') || item.starts_with("!!")) ? "it is no LIBRARY!SYMBOL"
                         : native                                                  ? ""
                                                                                   : patterns.add(item);
    if (!reason.empty()) return shown(item) + " names no calls: " + reason;
    (native ? out->native_calls : out->java_calls).push_back(item);
  }
  return any ? "" : "it takes out (!) and names nothing";
}

std::string set_threads(const Items& items, Options* out) {
  out->threads = items;
  return "";
}

std::string set_heap(const Items& items, Options* out) {
  const std::string& value = items[0];
  if (value == "all" || value == "old" || value == "young") {
    out->heap = value == "all" ? HeapScope::kAll : value == "old" ? HeapScope::kOld : HeapScope::kYoung;
    return "";
  }
  size_t dash = value.find('-');
  std::string_view text = value;
  if (dash == std::string::npos || !parse_number(text.substr(0, dash), 16, &out->heap_low) ||
      !parse_number(text.substr(dash + 1), 16, &out->heap_high)) {
    return not_one_of(value, "all, old, young, LO-HI (two hexadecimal addresses)");
  }
  if (out->heap_low >= out->heap_high) return shown(value) + " is an empty range: LO must be below HI";
  out->heap = HeapScope::kRange;
  return "";
}

std::string set_out(const Items& items, Options* out) {
  const std::string& value = items[0];
  for (size_t i = value.find('%'); i != std::string::npos; i = value.find('%', i + 2)) {
    if (i + 1 == value.size() || strchr("pt%", value[i + 1]) == nullptr) {
      return shown(value) + " has a % that is not %p (process id), %t (start time) or %%";
    }
  }
  out->out = value;
  return "";
}

std::string set_events(const Items& items, Options* out) {
  const std::string& value = items[0];
  if (value == "all" || value == "off") {
    out->max_events = value == "all" ? UINT64_MAX : 0;
    return "";
  }
  if (parse_number(value, 10, &out->max_events)) return "";
  return not_one_of(value, "a number, all, off");
}

std::string set_protect(const Items& items, Options* out) {
  const std::string& value = items[0];
  if (value == "auto") {
    out->protect = ProtectChoice::kAuto;
  } else if (value == "pkey") {
    out->protect = ProtectChoice::kPkey;
  } else if (value == "mprotect") {
    out->protect = ProtectChoice::kMprotect;
  } else {
    return not_one_of(value, "auto, pkey, mprotect");
  }
  return "";
}

std::string set_twin(const Items& items, Options* out) {
  const std::string& value = items[0];
  if (value != "auto" && value != "on" && value != "off") return not_one_of(value, "auto, on, off");
  out->twin = value == "auto" ? TwinChoice::kAuto : value == "on" ? TwinChoice::kOn : TwinChoice::kOff;
  return "";
}

// Values of the contract that this build performs, and those it does not yet.
std::string accept_only(const std::string& value, const Items& performed, const Items& later) {
  std::string choices;
  for (const std::string& choice : performed) {
    if (value == choice) return "";
    choices += (choices.empty() ? "" : ", ") + choice;
  }
  for (const std::string& choice : later) {
    if (value == choice) return shown(value) + " is not available in this build, only " + choices;
  }
  return not_one_of(value, choices.c_str());
}

std::string set_page(const Items& items, Options* out) {
  const std::string& value = items[0];
  if (value != "4k" && value != "64k" && value != "2m") return not_one_of(value, "4k, 64k, 2m");
  out->page_bytes = value == "4k" ? 4096 : value == "64k" ? 65536 : 2u << 20;
  return "";
}

std::string set_window(const Items& items, Options* out) {
  uint64_t window = 0;
  if (!parse_number(items[0], 10, &window) || window == 0 || window > kMaxWindow) {
    return not_one_of(items[0], ("1 to " + std::to_string(kMaxWindow)).c_str());
  }
  out->window = static_cast<uint32_t>(window);
  return "";
}

std::string set_mode(const Items& items, Options* out) {
  const std::string& value = items[0];
  if (value != "access" && value != "pages" && value != "off") return not_one_of(value, "access, pages, off");
  out->mode = value == "access" ? Mode::kAccess : value == "pages" ? Mode::kPages : Mode::kOff;
  return "";
}

std::string set_log(const Items& items, Options* out) {
  static constexpr const char* kLevels[] = {"error", "warn", "info", "debug"};
  const std::string& value = items[0];
  size_t colon = value.find(':');
  std::string level = value.substr(0, colon);
  for (int i = 0; i < 4; ++i) {
    if (level != kLevels[i]) continue;
    out->log_level = static_cast<LogLevel>(i);
    if (colon == std::string::npos) return "";
    out->log_file = value.substr(colon + 1);
    return out->log_file.empty() ? "the file name after ':' is missing" : "";
  }
  return not_one_of(level, "error, warn, info, debug");
}

using Row = OptionEntry;

// The order in which `help` and the messages list them.
const Row kRows[] = {
    {"classes", "LIST", "all", "classes whose accesses are recorded", true, set_classes},
    {"heap", "all|old|young|LO-HI", "all", "which part of the heap is observed (LO-HI: hexadecimal addresses)", false,
     set_heap},
    {"out", "FILE", "classaccess-%p.db", "database; %p process id, %t start time, %% a percent sign", false, set_out},
    {"overwrite", "on|off", "off", "replace a database that exists", false,
     [](const Items& items, Options* out) { return set_switch(items[0], &out->overwrite); }},
    {"mode", "access|pages|off", "access", "access tracing, page access model, or calls only", false, set_mode},
    {"calls", "LIST", "none", "calls that are timed: CLASS.METHOD, LIBRARY!SYMBOL", true, set_calls},
    {"events", "N|all|off", "1000000", "accesses and calls kept as single rows; counts stay exact for all", false,
     set_events},
    {"values", "on|off", "off", "keep the value loaded or stored", false,
     [](const Items& items, Options* out) { return set_switch(items[0], &out->values); }},
    {"protect", "auto|pkey|mprotect", "auto", "how pages are closed", false, set_protect},
    {"twin", "auto|on|off", "auto", "accesses on a second view of the heap, or (off) by opening the page", false,
     set_twin},
    {"probes", "on|off", "on", "hot instructions become inline probes (off: every access traps)", false,
     [](const Items& items, Options* out) { return set_switch(items[0], &out->probes); }},
    {"threads", "LIST", "all", "Java threads to observe, by name glob", true, set_threads},
    {"start", "now|manual", "now", "when recording starts (manual: on `classaccess start PID`)", false,
     [](const Items& items, Options* out) {
       out->manual = items[0] == "manual";
       return accept_only(items[0], {"now", "manual"}, {});
     }},
    {"page", "SIZE", "4k", "page size of mode=pages: 4k, 64k, 2m", false, set_page},
    {"window", "N", "1", "pages open at once in mode=pages", false, set_window},
    {"log", "LEVEL[:FILE]", "warn", "error, warn, info or debug", false, set_log},
};

}  // namespace

std::string shown(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 80)) out += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  return out + (text.size() > 80 ? "...'" : "'");
}

const OptionEntry* find_option(std::string_view key) {
  for (const Row& row : kRows) {
    if (key == row.key) return &row;
  }
  return nullptr;
}

std::string valid_options() {
  std::string text = "; valid options: ";
  for (const Row& row : kRows) {
    if (row.set != nullptr) text += std::string(row.key) + ", ";
  }
  return text + "help, @FILE";
}

std::string parse_options(const char* text, Options* out) {
  Options options;
  options.text = text != nullptr ? text : "";
  OptionParser parser;
  if (!parser.take(options.text)) return parser.error();
  options.help = parser.help();
  if (!parser.apply(&options)) return parser.error();
  *out = std::move(options);
  return "";
}

std::vector<OptionRow> option_rows() {
  std::vector<OptionRow> rows;
  for (const Row& row : kRows) {
    rows.push_back({row.key, row.values, row.fallback, row.meaning, row.is_list, row.set != nullptr});
  }
  return rows;
}

std::string options_help() {
  std::string text = "java -agentpath:libclassaccess.so=KEY=VALUE,KEY=VALUE ...\n\n";
  auto column = [&text](const std::string& cell, size_t width) {
    text += cell;
    text.append(cell.size() < width ? width - cell.size() : 1, ' ');
  };
  column("  option", 30);
  column("default", 19);
  text += "meaning\n";
  for (const Row& row : kRows) {
    column("  " + std::string(row.key) + "=" + row.values, 30);
    column(row.fallback, 19);
    text += row.meaning;
    text += row.set == nullptr ? " (not available in this build)\n" : "\n";
  }
  text +=
      "  help                                           this table\n"
      "  @FILE                                          read options from FILE, one a line, # starts a comment\n"
      "\n"
      "A piece without = continues the list before it: classes=Foo,Bar,out=x.db is two options. A value with a comma\n"
      "is quoted: out=\"a,b.db\".\n"
      "\n"
      "Class patterns:\n"
      "  com.acme.Order    that class          com.acme.Order+   with its subclasses\n"
      "  Order             in any package      !com.acme.Order   taken out\n"
      "  com.acme.*        one package         int[], Order[]    arrays\n"
      "  com.acme.**       package and below   *, ** stand for any characters but dots, any characters\n"
      "\n"
      "Calls:\n"
      "  com.acme.Order.total    that method, all its overloads   com.acme.**.*    all methods of a package and below\n"
      "  libz.so.1!inflate       a function of a library          libjvm.so!JVM_*  all that begin so\n"
      "  !com.acme.Order.get*    taken out\n";
  return text;
}

std::string expand_path(const std::string& pattern, int pid, int64_t unix_seconds) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') {
      path += std::to_string(pid);
    } else if (next == 't') {
      path += std::to_string(unix_seconds);
    } else if (next == '%') {
      path += '%';
    } else {
      path += pattern[i];
      continue;
    }
    ++i;
  }
  return path;
}

}  // namespace classaccess
