#include "agent/report/selection.h"

#include <cmath>
#include <limits>
#include <map>

#include "agent/report/name_patterns.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

// Seconds may be anything that a double holds.
int64_t nanoseconds(double seconds) {
  double value = std::floor(seconds * 1e9 + 0.5);
  if (value >= 9.2e18) return std::numeric_limits<int64_t>::max();
  return value <= -9.2e18 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

}  // namespace

void Selection::select_classes(RecordingFile& file, const std::vector<std::string>& items, std::string* problem) {
  NamePatterns patterns(NamePatterns::Of::kClasses, items);
  struct Known {
    std::string name;
    int64_t super = 0;
  };
  std::map<int64_t, Known> known;
  std::map<std::string, int> times;
  file.each("SELECT id, name, super_id FROM main.class", {}, [&](const CellRow& row) {
    known[integer_of(row[0])] = {text_of(row[1]), integer_of(row[2])};
    ++times[text_of(row[1])];
  });
  all_classes_ = patterns.empty();
  file.run("CREATE TEMP TABLE r_class(id INTEGER PRIMARY KEY, name TEXT, label TEXT)");
  bool any = false;
  for (const auto& [id, klass] : known) {
    std::vector<std::string> supers;
    // A damaged file could have a circle.
    for (int64_t at = klass.super; known.count(at) != 0 && supers.size() < 1000; at = known[at].super) {
      supers.push_back(known[at].name);
    }
    if (!all_classes_ && !patterns.matches(klass.name, supers)) continue;
    any = true;
    std::string label = times[klass.name] > 1 ? klass.name + " #" + std::to_string(id) : klass.name;
    file.run("INSERT INTO r_class VALUES(?1, ?2, ?3)", {id, klass.name, label});
  }
  if (all_classes_) return;
  description_ = "classes " + patterns.text();
  if (!any) {
    *problem = "no class of this recording matches '" + patterns.text() +
               "' (`*` stands for any characters but dots, `**` for any; a name without a dot is one in any package)";
  }
}

void Selection::select_threads(RecordingFile& file, const std::vector<std::string>& items, std::string* problem) {
  NamePatterns patterns(NamePatterns::Of::kThreads, items);
  std::vector<CellRow> known = file.rows("SELECT id, name FROM main.thread ORDER BY id");
  std::map<std::string, int> times;
  for (const CellRow& row : known) ++times[text_of(row[1])];
  all_threads_ = patterns.empty();
  file.run("CREATE TEMP TABLE r_thread(id INTEGER PRIMARY KEY, name TEXT, label TEXT)");
  bool any = false;
  for (const CellRow& row : known) {
    std::string name = text_of(row[1]);
    if (!all_threads_ && !patterns.matches(name)) continue;
    any = true;
    std::string number = " #" + std::to_string(integer_of(row[0]));
    std::string label = name.empty() ? "(no name)" + number : times[name] > 1 ? name + number : name;
    file.run("INSERT INTO r_thread VALUES(?1, ?2, ?3)", {row[0], row[1], label});
  }
  if (all_threads_) return;
  description_ += (description_.empty() ? "threads " : ", threads ") + patterns.text();
  if (!any && problem->empty()) *problem = "no thread of this recording matches '" + patterns.text() + "'";
}

std::string Selection::conditions(bool with_classes) const {
  std::string text = "WHERE 1";
  if (with_classes && !all_classes_) text += " AND class_id IN (SELECT id FROM r_class)";
  if (!all_threads_) text += " AND thread_id IN (SELECT id FROM r_thread)";
  return text;
}

std::string Selection::prepare(RecordingFile& file, const SelectionOptions& options) {
  std::string problem;
  has_times_ = options.since || options.until;
  since_ns_ = options.since ? nanoseconds(*options.since) : std::numeric_limits<int64_t>::min();
  until_ns_ = options.until ? nanoseconds(*options.until) : std::numeric_limits<int64_t>::max();
  file.run("PRAGMA temp.cache_size=-65536");
  accesses_ = integer_of(file.value("SELECT sum(count) FROM main.access_count"));
  single_rows_ = integer_of(file.value("SELECT count(*) FROM main.event"));
  last_row_ns_ = integer_of(file.value("SELECT t_ns FROM main.access ORDER BY seq DESC LIMIT 1"));
  select_classes(file, options.classes, &problem);
  select_threads(file, options.threads, &problem);
  if (!problem.empty()) return problem;
  if (options.since) description_ += (description_.empty() ? "from " : ", from ") + fixed(*options.since, 3) + " s";
  if (options.until) description_ += (description_.empty() ? "until " : ", until ") + fixed(*options.until, 3) + " s";

  std::string times;
  if (has_times_) {
    times = " AND t_ns >= " + std::to_string(since_ns_) + " AND t_ns < " + std::to_string(until_ns_);
    // The least number is no literal: its digits alone are too large.
    if (!options.since) times = " AND t_ns < " + std::to_string(until_ns_);
    file.run(
        "CREATE TEMP TABLE r_all AS SELECT thread_id, site_id, class_id, field_id, part, op, count(*) AS count, "
        "sum(size) AS bytes FROM main.access " +
        conditions(false) + times + " GROUP BY 1, 2, 3, 4, 5, 6");
  } else {
    file.run(
        "CREATE TEMP TABLE r_all AS SELECT thread_id, site_id, class_id, field_id, part, op, count, bytes "
        "FROM main.access_count " +
        conditions(false));
  }
  file.run("CREATE TEMP VIEW r_count AS SELECT * FROM r_all " + conditions(true));
  file.run("CREATE TEMP VIEW r_row AS SELECT * FROM main.access " + conditions(true) + times);
  file.run(
      "CREATE TEMP TABLE r_part AS SELECT column1 AS part, column2 AS label FROM (VALUES('element', '[element]'), "
      "('length', '[length]'), ('mark', '[mark word]'), ('klass', '[klass word]'), ('null_check', '[null check]'), "
      "('init', '[initialisation]'), ('padding', '[padding]'), ('field', '[field]'), ('static', '[static]'))");
  return file.error();
}

void Selection::need_objects(RecordingFile& file) {
  if (has_objects_) return;
  has_objects_ = true;
  file.run(
      "CREATE TEMP TABLE r_object AS SELECT gc_id, object, class_id, thread_id, count(*) AS n FROM r_row "
      "WHERE object IS NOT NULL AND part <> 'static' GROUP BY gc_id, object, class_id, thread_id");
}

std::string Selection::about_rows() const {
  if (!rows_are_part()) return "";
  if (single_rows_ == 0) return "no single rows were kept (events=off)";
  return "from single rows: the first " + with_commas(single_rows_) + " of " + with_commas(accesses_) +
         " accesses (events=N), " + duration(last_row_ns_) + " of the recording";
}

}  // namespace classaccess
