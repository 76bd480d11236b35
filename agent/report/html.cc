#include "agent/report/html.h"

#include <cmath>

#include "agent/report/page/embedded.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

// Inside <script> neither a name nor a literal may end it.
std::string inside_script(const std::string& json) {
  std::string text;
  for (char c : json) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

// Numbers beyond 2^53 are not exact in JavaScript: as text.
std::string json_value(const Cell& cell) {
  if (is_null(cell)) return "null";
  if (const std::string* text = std::get_if<std::string>(&cell)) return json_string(*text);
  if (const double* real = std::get_if<double>(&cell)) return std::isfinite(*real) ? fixed(*real, 3) : "null";
  int64_t number = integer_of(cell);
  constexpr int64_t kExact = int64_t{1} << 53;
  std::string text = std::to_string(number);
  return number > kExact || number < -kExact ? json_string(text) : text;
}

std::string chart_json(RecordingFile& file, const Chart& chart) {
  std::string text = "{\"id\": " + json_string(chart.id) + ", \"title\": " + json_string(chart.title) +
                     ", \"sql\": " + json_string(chart.sql) + ", \"columns\": [";
  std::vector<std::string> names = file.columns(chart.sql);
  for (size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + json_string(names[i]);
  text += "], \"rows\": [";
  bool first = true;
  file.each(chart.faster != nullptr ? chart.faster : chart.sql, {}, [&](const CellRow& row) {
    text += first ? "\n[" : ",\n[";
    first = false;
    for (size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + json_value(row[i]);
    text += "]";
  });
  return text + "]}";
}

}  // namespace

const std::vector<Chart>& charts() {
  static const std::vector<Chart> all = {
      {"run", "Run", "run",
       "SELECT command, jvm_vendor || ' ' || jvm_version AS jvm, gc, protection, options, started_at, status,\n"
       "  round((julianday(ended_at) - julianday(started_at)) * 86400, 3) AS seconds,\n"
       "  (SELECT coalesce(sum(count), 0) FROM access_count) AS accesses,\n"
       "  (SELECT count(seq) FROM access) AS single_rows,\n"
       "  (SELECT count(DISTINCT class_id) FROM access_count) AS classes,\n"
       "  (SELECT count(DISTINCT thread_id) FROM access_count) AS threads,\n"
       "  (SELECT count(*) FROM gc) AS collections\nFROM run"},
      {"classes", "Classes", "access_count",
       "SELECT class_id, class, accesses, loads, stores, rmws, bytes, threads, share\nFROM v_class\n"
       "ORDER BY accesses DESC, class LIMIT 500"},
      {"fields", "Fields in the object", "access_count",
       "WITH RECURSIVE top AS (SELECT class_id FROM v_class WHERE class_id IS NOT NULL ORDER BY accesses DESC LIMIT "
       "100),\n"
       "up(class_id, at) AS (SELECT class_id, class_id FROM top\n"
       "  UNION SELECT up.class_id, c.super_id FROM up JOIN class c ON c.id = up.at WHERE c.super_id IS NOT NULL),\n"
       "n AS (SELECT class_id, field_id, max(bytes / max(count, 1)) AS touched_bytes,\n"
       "  sum(count) FILTER (WHERE op = 'load') AS loads, sum(count) FILTER (WHERE op = 'store') AS stores,\n"
       "  sum(count) FILTER (WHERE op = 'rmw') AS rmws, count(DISTINCT thread_id) AS threads\n"
       "  FROM access_count WHERE field_id IS NOT NULL GROUP BY class_id, field_id)\n"
       "SELECT up.class_id, k.name AS class, k.instance_size, d.name AS declared_in, f.name AS field, f.type, "
       "f.offset,\n"
       "  n.touched_bytes, coalesce(n.loads, 0) AS loads, coalesce(n.stores, 0) AS stores, coalesce(n.rmws, 0) AS "
       "rmws,\n"
       "  coalesce(n.threads, 0) AS threads\n"
       "FROM up JOIN field f ON f.class_id = up.at AND NOT f.is_static JOIN class k ON k.id = up.class_id\n"
       "JOIN class d ON d.id = f.class_id LEFT JOIN n ON n.class_id = up.class_id AND n.field_id = f.id\n"
       "ORDER BY up.class_id, f.offset, f.id"},
      {"timeline", "Single rows in time", "access",
       "WITH span AS (SELECT max(1, max(t_ns) / 100 + 1) AS width FROM access),\n"
       "classes AS (SELECT class_id FROM v_class WHERE class_id IS NOT NULL ORDER BY accesses DESC LIMIT 20),\n"
       "threads AS (SELECT thread_id FROM access_count GROUP BY thread_id ORDER BY sum(count) DESC LIMIT 20)\n"
       "SELECT a.t_ns / s.width AS bucket, s.width AS bucket_ns, coalesce(c.name, '(others)') AS class,\n"
       "  CASE WHEN h.thread_id IS NULL THEN '(others)' ELSE coalesce(th.name, '(no name)') END AS thread,\n"
       "  count(*) AS accesses\n"
       "FROM access a JOIN span s LEFT JOIN classes t ON t.class_id = a.class_id LEFT JOIN class c ON c.id = "
       "t.class_id\n"
       "LEFT JOIN threads h ON h.thread_id = a.thread_id LEFT JOIN thread th ON th.id = h.thread_id\n"
       "GROUP BY 1, 3, 4 ORDER BY 1, 3, 4",
       "WITH span AS (SELECT max(1, max(t_ns) / 100 + 1) AS width FROM event),\n"
       "n AS (SELECT t_ns / (SELECT width FROM span) << 32 | tally AS bucket_and_tally, count(*) AS n FROM event\n"
       "  GROUP BY 1),\n"
       "classes AS (SELECT class_id FROM v_class WHERE class_id IS NOT NULL ORDER BY accesses DESC LIMIT 20),\n"
       "threads AS (SELECT thread_id FROM access_count GROUP BY thread_id ORDER BY sum(count) DESC LIMIT 20)\n"
       "SELECT n.bucket_and_tally >> 32 AS bucket, (SELECT width FROM span) AS bucket_ns,\n"
       "  coalesce(c.name, '(others)') AS class,\n"
       "  CASE WHEN h.thread_id IS NULL THEN '(others)' ELSE coalesce(th.name, '(no name)') END AS thread,\n"
       "  sum(n.n) AS accesses\n"
       "FROM n JOIN tally a ON a.id = (n.bucket_and_tally & 0xffffffff)\n"
       "LEFT JOIN classes t ON t.class_id = a.class_id LEFT JOIN class c ON c.id = t.class_id\n"
       "LEFT JOIN threads h ON h.thread_id = a.thread_id LEFT JOIN thread th ON th.id = h.thread_id\n"
       "GROUP BY 1, 3, 4 ORDER BY 1, 3, 4"},
      {"matrix", "Threads and classes", "access_count",
       "SELECT coalesce(thread, '(no name)') AS thread, class, accesses, loads, stores, rmws\nFROM v_thread_class\n"
       "ORDER BY accesses DESC, thread, class LIMIT 2000"},
      {"sites", "Methods and lines", "access_count",
       "SELECT coalesce(method, symbol, library, '(' || kind || ' code)', '(unknown)') AS method, line,\n"
       "  sum(accesses) AS accesses, sum(loads) AS loads, sum(stores) AS stores, sum(rmws) AS rmws\nFROM v_site\n"
       "GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 500"},
      {"never_read", "Stored and never loaded", "access_count",
       "SELECT class, field, type, is_static, stores, threads\nFROM v_never_read\n"
       "ORDER BY stores DESC, class, field LIMIT 500"},
      {"pages", "Pages in time", "page_access",
       "WITH span AS (SELECT max(1, (max(page) - min(page)) / 200 + 1) AS pages, min(page) AS low,\n"
       "  max(1, max(bucket) / 200 + 1) AS buckets FROM page_access)\n"
       "SELECT bucket / buckets AS column, buckets AS buckets_of_100_ms, (page - low) / pages AS line,\n"
       "  low + (page - low) / pages * pages AS first_page, pages, sum(count) AS touches\n"
       "FROM page_access JOIN span GROUP BY 1, 3 ORDER BY 1, 3"},
      {"calls", "Calls by duration", "call_histogram",
       "SELECT f.name AS function, h.log2_ns, sum(h.count) AS calls\n"
       "FROM call_histogram h JOIN function f ON f.id = h.function_id\nGROUP BY 1, 2 ORDER BY 1, 2 LIMIT 5000"},
      {"diagnostic", "What the tool did, cost and could not do", "diagnostic",
       "SELECT name, value, unit FROM diagnostic WHERE value <> 0 ORDER BY name"},
  };
  return all;
}

std::string html_page(RecordingFile& file) {
  std::string data = "{\"database\": " + json_string(file.path()) + ", \"charts\": [\n";
  bool first = true;
  for (const Chart& chart : charts()) {
    if (!file.has(chart.table)) continue;
    data += (first ? "" : ",\n") + chart_json(file, chart);
    first = false;
  }
  data += "\n]}";
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; style-src 'unsafe-inline'\">\n<title>classaccess</title>\n<style>\n";
  page += std::string(embedded::kPageCss) + "</style>\n</head>\n<body>\n<main id=\"page\"></main>\n";
  page += "<script type=\"application/json\" id=\"data\">" + inside_script(data) + "</script>\n";
  page += "<script>\n/*\n" + std::string(embedded::kD3Licence) + "*/\n" + std::string(embedded::kD3) + "\n</script>\n";
  page += "<script>\n" + std::string(embedded::kPageJs) + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace classaccess
