#include "agent/report/annotate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "agent/report/table.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kContext = 2;  // lines round one that has accesses

struct LineCounts {
  int64_t loads = 0, stores = 0, rmws = 0, threads = 0;
};
struct SourceFile {
  int64_t accesses = 0;
  std::map<int64_t, LineCounts> lines;
};

std::string trimmed_class(const std::string& method) {
  size_t dot = method.rfind('.');
  std::string name = dot == std::string::npos ? "" : method.substr(0, dot);
  // A hidden class: com.acme.Order$$Lambda/0x00...
  size_t slash = name.find('/');
  if (slash != std::string::npos) name.resize(slash);
  size_t package = name.rfind('.');
  size_t nested = name.find('$', package == std::string::npos ? 1 : package + 2);
  return nested == std::string::npos ? name : name.substr(0, nested);
}

// Files below the folder by file name, each sorted: the same one is found every time.
std::map<std::string, std::vector<fs::path>> source_files(const fs::path& folder, std::string* problem) {
  std::map<std::string, std::vector<fs::path>> all;
  std::error_code ec;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, ec), end;
  if (ec) {
    *problem = "cannot read the folder '" + folder.string() + "': " + ec.message();
    return all;
  }
  for (; at != end; at.increment(ec)) {
    std::error_code ignored;
    std::string kind = at->path().extension();
    bool is_source = kind == ".java" || kind == ".kt" || kind == ".scala" || kind == ".groovy";
    if (is_source && at->is_regular_file(ignored)) all[at->path().stem()].push_back(at->path());
    if (ec) break;
  }
  for (auto& [name, paths] : all) std::sort(paths.begin(), paths.end());
  return all;
}

// The file of com.acme.Order: its path ends with com/acme/Order, or (Kotlin's habit) it says `package com.acme`.
fs::path file_of(const std::string& klass, const std::map<std::string, std::vector<fs::path>>& files) {
  size_t dot = klass.rfind('.');
  auto it = files.find(dot == std::string::npos ? klass : klass.substr(dot + 1));
  if (it == files.end()) return {};
  std::string package = dot == std::string::npos ? "" : klass.substr(0, dot);
  std::string ending = "/" + package + "/";
  std::replace(ending.begin(), ending.end(), '.', '/');
  for (const fs::path& path : it->second) {
    std::string folder = "/" + path.parent_path().string() + "/";
    if (package.empty() ||
        (folder.size() >= ending.size() && folder.compare(folder.size() - ending.size(), ending.size(), ending) == 0)) {
      return path;
    }
  }
  for (const fs::path& path : it->second) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("package ", 0) != 0) continue;
      std::string said = line.substr(8, line.find_first_of("; \r", 8) - std::min<size_t>(line.size(), 8));
      if (said == package) return path;
      break;
    }
  }
  return {};
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::string spaced;
    for (char c : line) spaced += c == '\t' ? std::string(4 - spaced.size() % 4, ' ') : std::string(1, c);
    lines.push_back(printable(spaced));
  }
  return lines;
}

std::string number(int64_t value) { return value == 0 ? "." : with_commas(value); }

std::string listing(const fs::path& path, const SourceFile& source, size_t width) {
  std::vector<std::string> lines = lines_of(path);
  std::string text = "== " + path.string() + "  " + with_commas(source.accesses) + " accesses\n";
  size_t loads = 5, stores = 6, rmws = 0;
  for (const auto& [line, counts] : source.lines) {
    loads = std::max(loads, number(counts.loads).size());
    stores = std::max(stores, number(counts.stores).size());
    if (counts.rmws != 0) rmws = std::max<size_t>({rmws, 4, number(counts.rmws).size()});
  }
  auto row = [&](const std::string& l, const std::string& s, const std::string& r, const std::string& n,
                 const std::string& code) {
    std::string line = pad_left(l, loads) + "  " + pad_left(s, stores) + "  ";
    if (rmws != 0) line += pad_left(r, rmws) + "  ";
    line += pad_left(n, 5) + "  ";
    line += cut_back(code, width > line.size() + 8 ? width - line.size() : 8);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  };
  row("loads", "stores", "rmws", "line", "");
  int64_t last = 0, count = static_cast<int64_t>(lines.size()), beyond = 0;
  for (const auto& [line, counts] : source.lines) {
    if (line > count || line < 1) {
      beyond += counts.loads + counts.stores + counts.rmws;
      continue;
    }
    int64_t from = std::max<int64_t>(line - kContext, 1);
    if (last != 0 && from > last + 1) text += "--\n";
    int64_t to = std::min(line + kContext, count);
    for (int64_t at = std::max(from, last + 1); at <= to; ++at) {
      auto it = source.lines.find(at);
      LineCounts of = it != source.lines.end() ? it->second : LineCounts();
      row(number(of.loads), number(of.stores), number(of.rmws), std::to_string(at), lines[static_cast<size_t>(at - 1)]);
      last = at;
    }
  }
  if (beyond != 0)
    text += "  " + with_commas(beyond) + " accesses of lines that this file does not have: is it another version?\n";
  return text;
}

Table line_table(const std::vector<std::pair<fs::path, const SourceFile*>>& sources) {
  Table table;
  table.title = "Accesses by line of source";
  table.columns = {{"file"}, {"line", Kind::kNumber}, {"loads"}, {"stores"}, {"rmws"}, {"threads"}, {"text"}};
  for (const auto& [path, source] : sources) {
    std::vector<std::string> lines = lines_of(path);
    for (const auto& [line, counts] : source->lines) {
      bool there = line >= 1 && line <= static_cast<int64_t>(lines.size());
      Cell code = there ? Cell(lines[static_cast<size_t>(line - 1)]) : Cell();
      table.rows.push_back({path.string(), line, counts.loads, counts.stores, counts.rmws, counts.threads, code});
    }
  }
  return table;
}

}  // namespace

std::string annotated_sources(RecordingFile& file, const Selection& selection, const AnnotateOptions& options,
                              std::string* problem) {
  std::map<std::string, std::vector<fs::path>> files = source_files(options.folder, problem);
  if (!problem->empty()) return "";
  std::map<fs::path, SourceFile> sources;
  std::map<std::string, fs::path> of_class;
  int64_t no_file = 0, no_line = 0;
  file.each(
      "SELECT s.method, s.line, coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0), "
      "coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0), coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0), "
      "count(DISTINCT t.thread_id) FROM r_count t LEFT JOIN main.site s ON s.id = t.site_id GROUP BY s.method, s.line",
      {}, [&](const CellRow& row) {
        int64_t sum = integer_of(row[2]) + integer_of(row[3]) + integer_of(row[4]);
        if (is_null(row[0]) || integer_of(row[1]) <= 0) {
          no_line += sum;
          return;
        }
        std::string klass = trimmed_class(text_of(row[0]));
        auto known = of_class.find(klass);
        if (known == of_class.end()) known = of_class.emplace(klass, file_of(klass, files)).first;
        if (known->second.empty()) {
          no_file += sum;
          return;
        }
        SourceFile& source = sources[known->second];
        source.accesses += sum;
        LineCounts& counts = source.lines[integer_of(row[1])];
        counts.loads += integer_of(row[2]);
        counts.stores += integer_of(row[3]);
        counts.rmws += integer_of(row[4]);
        // Several methods of one line: at least so many.
        counts.threads = std::max(counts.threads, integer_of(row[5]));
      });
  std::vector<std::pair<fs::path, const SourceFile*>> order;
  for (const auto& [path, source] : sources) order.emplace_back(path, &source);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->accesses > b.second->accesses; });
  size_t shown = options.top == 0 ? order.size() : std::min(options.top, order.size());
  size_t more = order.size() - shown;
  order.resize(shown);
  if (options.format != "table") {
    Table table = line_table(order);
    if (options.format == "csv") return table_as_csv(table);
    return table_as_json(table, "") + "\n";
  }
  std::string text;
  for (const auto& [path, source] : order) text += (text.empty() ? "" : "\n") + listing(path, *source, options.width);
  if (!text.empty()) text += "\n";
  if (order.empty()) text += "no file below '" + options.folder + "' belongs to a class that made accesses\n";
  if (more > 0) text += with_commas(static_cast<int64_t>(more)) + " more files (--top 0 shows all)\n";
  text += with_commas(no_file) + " accesses by classes without a file here, " + with_commas(no_line) +
          " by code without lines\n";
  if (selection.has_times() && selection.rows_are_part()) text += selection.about_rows() + "\n";
  return text;
}

}  // namespace classaccess
