// Classes, sites, threads, fields that are never read; and the run.
#include "agent/report/sections.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

constexpr const char* kNoAccess = "no accesses";

std::string share_of_all() {
  return "round(100.0 * sum(t.count) / (SELECT max(sum(count), 1) FROM r_count), 2) AS share";
}

std::string no_access_text(const SectionInput& input) {
  const std::string& selected = input.selection.description();
  return selected.empty() ? kNoAccess : std::string(kNoAccess) + " of what was selected: " + selected;
}

void about_times(const SectionInput& input, Table* table) {
  if (input.selection.has_times() && input.selection.rows_are_part()) {
    table->notes.push_back(input.selection.about_rows());
  }
}

void add_pair(Table* table, const std::string& name, Cell value) {
  if (!is_null(value) && !(std::holds_alternative<std::string>(value) && text_of(value).empty())) {
    table->rows.push_back({name, value});
  }
}

std::string hexadecimal(const Cell& cell) {
  char text[32];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(integer_of(cell)));
  return text;
}

}  // namespace

Table run_section(const SectionInput& input) {
  Table table;
  table.title = "Run";
  table.columns = {{"what", Kind::kTail}, {"value", Kind::kWrapped, 0, 40}};
  table.if_empty = "the recording has not begun";
  std::vector<CellRow> runs = input.file.rows(
      "SELECT command, pid, ltrim(coalesce(jvm_vendor, '') || ' ' || coalesce(jvm_version, '')), gc, heap_start, "
      "heap_size, protection, options, "
      "agent_version, started_at, ended_at, status, "
      "CAST(round((julianday(ended_at) - julianday(started_at)) * 86400000) AS INTEGER) FROM main.run");
  if (runs.empty()) return table;
  const CellRow& run = runs[0];
  add_pair(&table, "command", run[0]);
  if (!is_null(run[1])) add_pair(&table, "pid", std::to_string(integer_of(run[1])));
  add_pair(&table, "jvm", run[2]);
  add_pair(&table, "collector", run[3]);
  if (integer_of(run[5]) != 0) {
    add_pair(&table, "heap_start", hexadecimal(run[4]));
    add_pair(&table, "heap_bytes", run[5]);
  }
  add_pair(&table, "protection", run[6]);
  add_pair(&table, "options", run[7]);
  add_pair(&table, "agent", run[8]);
  add_pair(&table, "started", run[9]);
  if (!is_null(run[12])) add_pair(&table, "lasted", fixed(static_cast<double>(integer_of(run[12])) / 1e3, 3) + " s");
  std::string status = text_of(run[11]);
  if (status == "running") status += " (it goes on, or the JVM was killed; all but the last second is here)";
  add_pair(&table, "status", status);
  add_pair(&table, "accesses", input.selection.accesses());
  add_pair(&table, "single_rows", input.selection.single_rows());
  auto count = [&](const std::string& sql) { return integer_of(input.file.value(sql)); };
  add_pair(&table, "classes", count("SELECT count(DISTINCT class_id) FROM main.access_count"));
  add_pair(&table, "threads", count("SELECT count(DISTINCT thread_id) FROM main.access_count"));
  add_pair(&table, "collections", count("SELECT count(*) FROM main.gc"));
  if (count("SELECT count(*) FROM main.diagnostic WHERE name = 'page_touches' AND value > 0") != 0) {
    add_pair(&table, "page_touches", input.file.diagnostic("page_touches"));
  }
  add_pair(&table, "selected", input.selection.description());
  return table;
}

Table classes_section(const SectionInput& input) {
  Table table;
  table.title = "Classes by accesses";
  table.columns = {{"class", Kind::kText, 0, 24}, {"accesses", Kind::kCount},  {"share", Kind::kShare},
                   {"loads", Kind::kCount, 1},    {"stores", Kind::kCount, 1}, {"rmws", Kind::kCount, 2},
                   {"bytes", Kind::kCount, 4},    {"threads", Kind::kCount},   {"objects", Kind::kCount, 3}};
  table.if_empty = no_access_text(input);
  input.selection.need_objects(input.file);
  fill(input,
       "WITH o AS (SELECT class_id, max(n) AS objects FROM "
       "(SELECT class_id, count(DISTINCT object) AS n FROM r_object GROUP BY class_id, gc_id) GROUP BY class_id) "
       "SELECT coalesce(c.label, '(not resolved)') AS class, sum(t.count) AS accesses, " +
           share_of_all() + ", " + kOperationSums +
           ", sum(t.bytes) AS bytes, count(DISTINCT t.thread_id) AS threads, max(o.objects) AS objects "
           "FROM r_count t LEFT JOIN r_class c ON c.id = t.class_id LEFT JOIN o ON o.class_id = t.class_id "
           "GROUP BY c.id ORDER BY accesses DESC, class",
       &table);
  keep_if_used("rmws", &table);
  if (!table.rows.empty()) {
    std::string rows = input.selection.about_rows();
    table.notes.push_back("objects: different ones between two collections, at most" +
                          (rows.empty() ? std::string() : "; " + rows));
  }
  about_times(input, &table);
  return table;
}

Table sites_section(const SectionInput& input) {
  Table table;
  table.title = "Methods and lines that make the accesses";
  table.columns = {{"method", Kind::kText, 0, 30}, {"line", Kind::kNumber},
                   {"accesses", Kind::kCount},     {"share", Kind::kShare},
                   {"loads", Kind::kCount, 2},     {"stores", Kind::kCount, 2},
                   {"rmws", Kind::kCount, 3},      {"threads", Kind::kCount, 3},
                   {"code", Kind::kTail, 4, 8},    {"touches_most", Kind::kText, 3, 20}};
  table.if_empty = no_access_text(input);
  fill(input,
       // g: the number of a method and line; joining by their texts would take longer than all the rest. places is
       // grouped once more, though one row a g is left: SQLite expects few rows otherwise, and scans it for each.
       "WITH numbered AS MATERIALIZED (SELECT *, dense_rank() OVER (ORDER BY method, line) AS g FROM "
       "(SELECT id, kind, line, coalesce(method, symbol || ' (' || library || ')', symbol, library, "
       "'(' || kind || ' code)') AS method FROM main.site)), "
       "named AS MATERIALIZED (SELECT t.*, coalesce(s.g, 0) AS g, coalesce(s.method, '(unknown)') AS method, "
       "s.line AS line, s.kind AS kind, "
       "coalesce(c.label, '(not resolved)') || '.' || coalesce(f.name, p.label, '[unknown]') AS place "
       "FROM r_count t LEFT JOIN numbered s ON s.id = t.site_id LEFT JOIN r_class c ON c.id = t.class_id "
       "LEFT JOIN main.field f ON f.id = t.field_id LEFT JOIN r_part p ON p.part = t.part), "
       "kinds AS MATERIALIZED (SELECT g, group_concat(kind, ' ') AS code FROM "
       "(SELECT DISTINCT g, kind FROM named ORDER BY g, kind) GROUP BY g), "
       "places AS MATERIALIZED (SELECT g, max(place) AS place FROM (SELECT g, place, row_number() OVER (PARTITION BY g "
       "ORDER BY sum(count) DESC, place) AS rank FROM named GROUP BY g, place) WHERE rank = 1 GROUP BY g) "
       "SELECT t.method AS method, t.line AS line, sum(t.count) AS accesses, " +
           share_of_all() + ", " + kOperationSums +
           ", count(DISTINCT t.thread_id) AS threads, k.code AS code, p.place AS touches_most FROM named t "
           "LEFT JOIN kinds k ON k.g = t.g LEFT JOIN places p ON p.g = t.g "
           "GROUP BY t.g ORDER BY accesses DESC, t.method, t.line",
       &table);
  keep_if_used("rmws", &table);
  about_times(input, &table);
  return table;
}

Table threads_section(const SectionInput& input) {
  Table table;
  table.title = "Threads by accesses";
  table.columns = {
      {"thread", Kind::kTail, 0, 20},  {"tid", Kind::kNumber, 5},     {"kind", Kind::kTail, 3, 8},
      {"accesses", Kind::kCount},      {"share", Kind::kShare},       {"loads", Kind::kCount, 1},
      {"stores", Kind::kCount, 1},     {"rmws", Kind::kCount, 2},     {"classes", Kind::kCount, 1},
      {"started", Kind::kDuration, 4}, {"ended", Kind::kDuration, 4}, {"touches_most", Kind::kText, 2, 20}};
  table.if_empty = no_access_text(input);
  fill(input,
       "WITH most AS (SELECT t.thread_id AS thread_id, coalesce(c.label, '(not resolved)') AS class, row_number() OVER "
       "(PARTITION BY t.thread_id ORDER BY sum(t.count) DESC, c.label) AS rank "
       "FROM r_count t LEFT JOIN r_class c ON c.id = t.class_id GROUP BY t.thread_id, c.id) "
       "SELECT coalesce(h.label, '(unknown)') AS thread, th.tid AS tid, th.kind AS kind, sum(t.count) AS accesses, " +
           share_of_all() + ", " + kOperationSums +
           ", count(DISTINCT coalesce(t.class_id, 0)) AS classes, th.started_ns AS started, th.ended_ns AS ended, "
           "m.class AS touches_most FROM r_count t LEFT JOIN r_thread h ON h.id = t.thread_id "
           "LEFT JOIN main.thread th ON th.id = t.thread_id "
           "LEFT JOIN most m ON m.thread_id IS t.thread_id AND m.rank = 1 "
           "GROUP BY t.thread_id ORDER BY accesses DESC, thread",
       &table);
  keep_if_used("rmws", &table);
  about_times(input, &table);
  return table;
}

Table never_read_section(const SectionInput& input) {
  Table table;
  table.title = "Fields that are stored and never loaded";
  table.columns = {{"class", Kind::kText, 0, 24},         {"field", Kind::kTail, 0, 12}, {"type", Kind::kText, 1, 8},
                   {"static", Kind::kTail, 2, 3},         {"stores", Kind::kCount},      {"threads", Kind::kCount},
                   {"stored_most_by", Kind::kText, 3, 24}};
  table.if_empty = "none: every field that is stored is loaded too";
  if (input.selection.accesses() == 0) table.if_empty = kNoAccess;
  // A field of a selected class may be read through an object of another one: r_all, not r_count.
  fill(input,
       "WITH stored AS (SELECT t.field_id AS field_id, sum(t.count) AS stores, count(DISTINCT t.thread_id) AS threads "
       "FROM r_all t WHERE t.field_id IS NOT NULL GROUP BY t.field_id HAVING sum(t.op <> 'store') = 0), "
       "by AS (SELECT t.field_id AS field_id, coalesce(s.method, s.symbol, s.library, '(unknown)') || "
       "coalesce(':' || s.line, '') AS place, row_number() OVER (PARTITION BY t.field_id ORDER BY sum(t.count) DESC, "
       "s.method, s.line) AS rank FROM r_all t JOIN stored USING (field_id) LEFT JOIN main.site s ON s.id = t.site_id "
       "GROUP BY t.field_id, s.method, s.symbol, s.line) "
       "SELECT c.label AS class, f.name AS field, f.type AS type, CASE WHEN f.is_static THEN 'yes' ELSE 'no' END, "
       "n.stores, n.threads, b.place FROM stored n JOIN main.field f ON f.id = n.field_id "
       "JOIN r_class c ON c.id = f.class_id LEFT JOIN by b ON b.field_id = n.field_id AND b.rank = 1 "
       "ORDER BY n.stores DESC, c.label, f.name",
       &table);
  if (!input.selection.all_threads()) table.notes.push_back("of the selected threads; another one may load them");
  if (input.selection.has_times()) table.notes.push_back("in the selected time; they may be loaded at another one");
  about_times(input, &table);
  return table;
}

}  // namespace classaccess
