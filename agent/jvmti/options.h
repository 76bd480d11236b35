// The option string of interface.md section 1.
// Context: Agent_OnLoad only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/base/raw_log.h"
#include "agent/protect/heap_scope.h"

namespace classaccess {

enum class ProtectChoice { kAuto, kPkey, kMprotect };
enum class Mode { kAccess, kPages, kOff };  // kOff: calls only
enum class TwinChoice { kAuto, kOn, kOff };

struct Options {
  std::vector<std::string> classes;  // list items as written; empty: all
  std::vector<std::string> threads;  // globs; empty: all
  // calls=: CLASS.METHOD (calls/java/call_patterns.h) and LIBRARY!SYMBOL (calls/native/native_calls.h), as written.
  std::vector<std::string> java_calls, native_calls;
  HeapScope heap = HeapScope::kAll;
  uint64_t heap_low = 0, heap_high = 0;
  std::string out = "classaccess-%p.db";
  bool overwrite = false;
  uint64_t max_events = 1000000;  // UINT64_MAX: all, 0: off
  bool values = false;
  bool probes = true;
  Mode mode = Mode::kAccess;
  uint64_t page_bytes = 4096;  // mode=pages
  uint32_t window = 1;         // mode=pages
  ProtectChoice protect = ProtectChoice::kAuto;
  TwinChoice twin = TwinChoice::kAuto;
  bool manual = false;  // start=manual
  LogLevel log_level = LogLevel::kWarn;
  std::string log_file;  // empty: standard error
  bool help = false;
  std::string text;  // the string as given, for run.options
};

// Empty string and *out filled, or a one-line message that names the option and
// lists the valid ones. Reads @FILE. No other side effect.
std::string parse_options(const char* text, Options* out);

// A row of the option table.
struct OptionRow {
  const char* key;
  const char* values;
  const char* fallback;
  const char* meaning;
  bool is_list;
  bool available;  // in this build
};
std::vector<OptionRow> option_rows();

// The option table for `help`.
std::string options_help();

// %p and %t replaced; %% is a percent sign.
std::string expand_path(const std::string& pattern, int pid, int64_t unix_seconds);

}  // namespace classaccess
