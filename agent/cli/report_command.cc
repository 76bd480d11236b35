#include "agent/cli/report_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "agent/report/report.h"

namespace classaccess {
namespace {

// `--html x.db` is a slip of the hand: the page would take the place of a recording.
bool is_database(const std::string& path) {
  char start[16] = {};
  FILE* file = fopen(path.c_str(), "re");
  size_t got = file != nullptr ? fread(start, 1, sizeof(start), file) : 0;
  if (file != nullptr) fclose(file);
  return got == sizeof(start) && memcmp(start, "SQLite format 3", sizeof(start)) == 0;
}

int write_page(const std::string& path, const std::string& page) {
  if (is_database(path)) {
    fprintf(stderr, "classaccess: '%s' is a database: give --html another file\n", path.c_str());
    return 1;
  }
  FILE* file = fopen(path.c_str(), "we");
  bool written = file != nullptr && fwrite(page.data(), 1, page.size(), file) == page.size();
  int error = errno;
  if (file != nullptr && fclose(file) != 0) {
    written = false;
    error = errno;
  }
  if (written) return 0;
  fprintf(stderr, "classaccess: cannot write '%s': %s\n", path.c_str(), strerror(error));
  return 1;
}

int run_report(const ReportOptions& options, const std::string& page) {
  std::string text, problem;
  int status = make_report(options, &text, &problem);
  if (status != 0) {
    fprintf(stderr, "classaccess: %s\n", problem.c_str());
    return status;
  }
  if (options.html) return write_page(page, text);
  if (fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0) return 0;
  // A reader that has seen enough (head) is no failure; with SIGPIPE ignored it shows here.
  if (errno == EPIPE) return 0;
  fprintf(stderr, "classaccess: cannot write the report: %s\n", strerror(errno));
  return 1;
}

}  // namespace

std::function<int()> add_report_options(CLI::App* command) {
  auto options = std::make_shared<ReportOptions>();
  auto width = std::make_shared<size_t>(0);
  auto page = std::make_shared<std::string>();
  command->add_option("DB", options->database, "the database of a recording; it may still be written")->required();
  command->add_option("SECTION", options->sections, "tables to print, see below; all that the recording has");
  // One value each: what follows is DB or a SECTION.
  auto list = [&](const char* name, std::vector<std::string>* to, const char* meaning) {
    command->add_option(name, *to, meaning)->type_name("GLOB")->expected(1)->take_all();
  };
  list("--class", &options->selection.classes, "only these classes: a list of patterns as in classes=");
  list("--thread", &options->selection.threads, "only these threads: a list of patterns as in threads=");
  auto seconds = [&](const char* name, std::optional<double>* to, const char* meaning) {
    command
        ->add_option_function<double>(
            name, [to](const double& value) { *to = value; }, meaning)
        ->type_name("SECONDS");
  };
  seconds("--since", &options->selection.since, "only single rows from then on, in seconds since the start");
  seconds("--until", &options->selection.until, "only single rows before then");
  command
      ->add_option_function<size_t>(
          "--top", [options](const size_t& rows) { options->top = rows; },
          "rows of each table (of `fields`: classes), 0: all; default: 10 in a terminal, all as csv or json")
      ->type_name("N");
  command->add_option("--format", options->format, "table, json, or csv (of one SECTION)")->capture_default_str();
  command->add_option("--width", *width, "columns; default: the terminal's, 80 if there is none")
      ->check(CLI::Range(40, 10000));
  command->add_flag("--collapsed", options->collapsed,
                    "collapsed stacks, class;method;field weight, for flamegraph.pl and speedscope");
  command->add_option("--source", options->source, "annotate the Java sources below this folder")->type_name("DIR");
  command->add_option("--html", *page, "write one page with charts, which needs no network, in place of tables")
      ->type_name("FILE");
  command->footer(sections_help());
  return [options, width, page] {
    options->html = !page->empty();
    options->width = *width != 0 ? *width : terminal_width();
    return run_report(*options, *page);
  };
}

}  // namespace classaccess
