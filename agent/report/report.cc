#include "agent/report/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "agent/report/annotate.h"
#include "agent/report/collapsed.h"
#include "agent/report/html.h"
#include "agent/report/sections.h"
#include "agent/report/table.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

constexpr int kFailure = 1, kUsage = 2;

std::string section_names() {
  std::string names;
  for (const Section& section : report_sections()) names += (names.empty() ? "" : ", ") + std::string(section.name);
  return names;
}

// Empty, or why the options do not fit together.
std::string usage_problem(const ReportOptions& options) {
  for (const std::string& name : options.sections) {
    if (find_section(name) == nullptr) return "there is no section '" + name + "'; there are: " + section_names();
  }
  if (options.format != "table" && options.format != "csv" && options.format != "json") {
    return "there is no format '" + options.format + "'; there are: table, csv, json";
  }
  bool annotates = !options.source.empty();
  if (options.html && (options.collapsed || annotates || !options.sections.empty() || options.format != "table")) {
    return "--html is a report of its own: give neither SECTION nor --format, --collapsed, --source";
  }
  const SelectionOptions& selected = options.selection;
  if (options.html && (!selected.classes.empty() || !selected.threads.empty() || selected.since || selected.until)) {
    return "--html shows the whole recording; the page has a filter of its own";
  }
  if (options.collapsed && annotates) return "--collapsed and --source are two reports: give one of them";
  if ((options.collapsed || annotates) && !options.sections.empty()) {
    return std::string(annotates ? "--source" : "--collapsed") + " takes no SECTION";
  }
  if (options.collapsed && options.format != "table") return "--collapsed has a format of its own";
  if (options.format == "csv" && !annotates && options.sections.size() != 1) {
    return "--format csv writes one table: give one SECTION of " + section_names();
  }
  const SelectionOptions& selection = options.selection;
  if (selection.since && selection.until && *selection.since >= *selection.until) {
    return "--since is not before --until";
  }
  return "";
}

size_t rows_wanted(const ReportOptions& options) {
  constexpr size_t kInTerminal = 10, kAll = 0;
  return options.top.value_or(options.format == "table" ? kInTerminal : kAll);
}

std::vector<Table> make_tables(const ReportOptions& options, RecordingFile& file, Selection& selection) {
  std::vector<const Section*> wanted;
  for (const std::string& name : options.sections) wanted.push_back(find_section(name));
  if (wanted.empty()) {
    for (const Section& section : report_sections()) {
      if (section.applies(file)) wanted.push_back(&section);
    }
  }
  std::vector<Table> tables;
  std::vector<const Section*> done;
  for (const Section* section : wanted) {
    if (std::find(done.begin(), done.end(), section) != done.end()) continue;
    done.push_back(section);
    tables.push_back(section->make({file, selection, rows_wanted(options)}));
    tables.back().name = section->name;
  }
  return tables;
}

std::string as_json(const std::vector<Table>& tables, const std::string& database, const std::string& selected) {
  std::string text = "{\n  \"database\": " + json_string(database) + ",\n  \"selected\": " + json_string(selected) +
                     ",\n  \"sections\": {";
  for (size_t i = 0; i < tables.size(); ++i) {
    text += (i > 0 ? ",\n    " : "\n    ") + json_string(tables[i].name) + ": " + table_as_json(tables[i], "    ");
  }
  return text + "\n  }\n}\n";
}

}  // namespace

int make_report(const ReportOptions& options, std::string* out, std::string* problem) {
  *problem = usage_problem(options);
  if (!problem->empty()) return kUsage;
  RecordingFile file;
  *problem = file.open(options.database);
  if (!problem->empty()) return kFailure;
  Selection selection;
  *problem = selection.prepare(file, options.selection);
  if (!problem->empty()) return kFailure;

  std::string text;
  if (options.html) {
    text = html_page(file);
  } else if (options.collapsed) {
    text = collapsed_stacks(file);
  } else if (!options.source.empty()) {
    text = annotated_sources(file, selection, {options.source, options.format, options.width, rows_wanted(options)},
                             problem);
  } else {
    std::vector<Table> tables = make_tables(options, file, selection);
    if (options.format == "json") {
      text = as_json(tables, options.database, selection.description());
    } else {
      for (const Table& table : tables) {
        if (options.format == "csv") {
          text += table_as_csv(table);
        } else {
          text += (text.empty() ? "" : "\n") + table_as_text(table, options.width);
        }
      }
    }
  }
  if (problem->empty()) *problem = file.error();
  if (!problem->empty()) return kFailure;
  *out = text;
  return 0;
}

size_t terminal_width() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
    return size.ws_col;
  }
  return 80;
}

std::string sections_help() {
  std::string text = "Sections:\n";
  for (const Section& section : report_sections()) text += "  " + pad_right(section.name, 15) + section.shows + "\n";
  return text;
}

}  // namespace classaccess
