// mode=pages, and calls.
#include "agent/report/sections.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

constexpr int64_t kBucketNs = 100000000;

// A bucket is in the selected time if any of it is.
std::string page_conditions(const Selection& selection) {
  std::string text = "WHERE 1";
  if (!selection.all_threads()) text += " AND thread_id IN (SELECT id FROM r_thread)";
  if (!selection.all_classes()) {
    text += " AND page IN (SELECT page FROM main.page_class WHERE class_id IN (SELECT id FROM r_class))";
  }
  if (selection.has_times()) {
    text += " AND bucket >= " + std::to_string(selection.since_ns() / kBucketNs) +
            " AND bucket <= " + std::to_string((selection.until_ns() - 1) / kBucketNs);
  }
  return text;
}

}  // namespace

Table pages_section(const SectionInput& input) {
  Table table;
  table.title = "Pages by touches";
  table.columns = {{"page", Kind::kNumber},      {"address", Kind::kTail, 3, 12}, {"region", Kind::kTail, 1, 8},
                   {"touches", Kind::kCount},    {"loads", Kind::kCount, 2},      {"stores", Kind::kCount, 2},
                   {"rmws", Kind::kCount, 4},    {"threads", Kind::kCount, 1},    {"first", Kind::kDuration, 1},
                   {"last", Kind::kDuration, 1}, {"classes", Kind::kTail, 0, 16}};
  table.if_empty = "no pages: recorded without mode=pages";
  if (!input.file.has("v_page")) return table;
  if (!is_null(input.file.value("SELECT 1 FROM main.page LIMIT 1"))) table.if_empty = "no touches of what was selected";
  fill(input,
       "WITH n AS (SELECT page, sum(count) AS touches, "
       "coalesce(sum(count) FILTER (WHERE op = 'load'), 0) AS loads, "
       "coalesce(sum(count) FILTER (WHERE op = 'store'), 0) AS stores, "
       "coalesce(sum(count) FILTER (WHERE op = 'rmw'), 0) AS rmws, count(DISTINCT thread_id) AS threads "
       "FROM main.page_access " +
           page_conditions(input.selection) +
           " GROUP BY page) SELECT n.page, v.address, v.region, n.touches, n.loads, n.stores, n.rmws, n.threads, "
           "v.first_touch_ns, v.last_touch_ns, v.classes FROM n LEFT JOIN main.v_page v ON v.page = n.page "
           "ORDER BY n.touches DESC, n.page",
       &table);
  if (!table.rows.empty()) {
    int64_t all =
        integer_of(input.file.value("SELECT sum(count) FROM main.page_access " + page_conditions(input.selection)));
    int64_t pages = integer_of(
        input.file.value("SELECT count(DISTINCT page) FROM main.page_access " + page_conditions(input.selection)));
    table.notes.push_back(with_commas(all) + " touches of " + with_commas(pages) +
                          " pages; region and classes are those at the end");
  }
  return table;
}

Table transitions_section(const SectionInput& input) {
  Table table;
  table.title = "Which page was touched after which";
  table.columns = {
      {"from_page", Kind::kNumber}, {"to_page", Kind::kNumber},           {"count", Kind::kCount},
      {"share", Kind::kShare},      {"from_classes", Kind::kTail, 1, 16}, {"to_classes", Kind::kTail, 1, 16}};
  table.if_empty = "no transitions: recorded without mode=pages";
  if (!input.file.has("page_transition") || !input.file.has("v_page")) return table;
  fill(input,
       "SELECT t.from_page, t.to_page, t.count, round(100.0 * t.count / (SELECT sum(count) FROM main.page_transition), "
       "2), "
       "f.classes, v.classes FROM main.page_transition t LEFT JOIN main.v_page f ON f.page = t.from_page "
       "LEFT JOIN main.v_page v ON v.page = t.to_page ORDER BY t.count DESC, t.from_page, t.to_page",
       &table);
  if (!input.selection.description().empty() && !table.rows.empty()) {
    table.notes.push_back("of the whole recording: a transition has neither thread nor time");
  }
  return table;
}

Table calls_section(const SectionInput& input) {
  Table table;
  table.title = "Functions by time";
  table.columns = {{"function", Kind::kText, 0, 24}, {"kind", Kind::kTail, 3, 6},     {"calls", Kind::kCount},
                   {"untimed", Kind::kCount, 3},     {"total", Kind::kDuration},      {"self", Kind::kDuration},
                   {"mean", Kind::kDuration, 1},     {"least", Kind::kDuration, 2},   {"most", Kind::kDuration, 2},
                   {"threads", Kind::kCount, 1},     {"library", Kind::kText, 4, 12}, {"refused", Kind::kTail, 1, 12}};
  table.if_empty = "no calls: recorded without calls=";
  if (!input.file.has("function") || !input.file.has("call_stat")) return table;
  std::string threads = input.selection.all_threads() ? "" : " AND s.thread_id IN (SELECT id FROM r_thread)";
  fill(input,
       "SELECT f.name, f.kind, coalesce(sum(s.count), 0) AS calls, coalesce(sum(s.untimed), 0), sum(s.total_ns) AS "
       "total, "
       "sum(s.self_ns), CASE WHEN sum(s.count) > sum(s.untimed) THEN sum(s.total_ns) / (sum(s.count) - sum(s.untimed)) "
       "END, min(s.min_ns), max(s.max_ns), count(DISTINCT s.thread_id), f.library, f.refused "
       "FROM main.function f LEFT JOIN main.call_stat s ON s.function_id = f.id" +
           threads + " GROUP BY f.id ORDER BY total DESC, calls DESC, f.name, f.id",
       &table);
  if (input.selection.has_times() && !table.rows.empty()) {
    table.notes.push_back("of the whole recording: --since and --until do not select calls");
  }
  return table;
}

Table call_classes_section(const SectionInput& input) {
  Table table;
  table.title = "Classes that calls touch";
  table.columns = {{"function", Kind::kText, 0, 24}, {"class", Kind::kText, 0, 24}, {"accesses", Kind::kCount},
                   {"loads", Kind::kCount},          {"stores", Kind::kCount},      {"rmws", Kind::kCount, 1},
                   {"threads", Kind::kCount, 1}};
  table.if_empty = "no calls: recorded without calls=";
  if (!input.file.has("function") || !input.file.has("call_class_count")) return table;
  std::string threads = input.selection.all_threads() ? "" : " AND t.thread_id IN (SELECT id FROM r_thread)";
  std::string classes = input.selection.all_classes() ? "" : " AND t.class_id IN (SELECT id FROM r_class)";
  fill(input,
       std::string("SELECT coalesce(f.name, '(unknown)') AS function, coalesce(c.label, '(not resolved)') AS class, "
                   "sum(t.count) AS accesses, ") +
           kOperationSums +
           ", count(DISTINCT t.thread_id) FROM main.call_class_count t LEFT JOIN main.function f ON f.id = "
           "t.function_id LEFT JOIN r_class c ON c.id = t.class_id WHERE 1" +
           threads + classes + " GROUP BY t.function_id, c.id ORDER BY accesses DESC, function, class",
       &table);
  return table;
}

}  // namespace classaccess
