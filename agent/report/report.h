// `classaccess report`: what a recording shows, as tables for a terminal, CSV or JSON.
// Context: the classaccess command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/report/selection.h"

namespace classaccess {

struct ReportOptions {
  std::string database;
  SelectionOptions selection;
  std::optional<size_t> top;          // rows of a table, 0: all; not given: 10 in a terminal, all as data
  std::string format = "table";       // table, csv, json
  size_t width = 80;                  // of the terminal
  std::vector<std::string> sections;  // empty: all that the recording has
  bool collapsed = false;             // collapsed stacks in place of tables
  std::string source;                 // folder of Java sources: annotate them in place of tables
  bool html = false;                  // a page with charts, of the whole recording, in place of tables
};

// Exit status: 0, 1 the report cannot be made, 2 the options do not fit together. *out is the
// report, or empty with *problem.
int make_report(const ReportOptions& options, std::string* out, std::string* problem);

// Columns of the terminal that standard output is; 80 if it is none or does not say.
size_t terminal_width();

// Names of the sections with what they show, for --help.
std::string sections_help();

}  // namespace classaccess
