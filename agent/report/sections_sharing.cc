// What several threads touch: objects, and cache lines.
#include <stdio.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/report/sections.h"
#include "agent/report/text.h"

namespace classaccess {

Table sharing_section(const SectionInput& input) {
  Table table;
  table.title = "Classes that several threads touch";
  table.columns = {{"class", Kind::kText, 0, 24},   {"threads", Kind::kCount},
                   {"storing", Kind::kCount},       {"loads", Kind::kCount, 1},
                   {"stores", Kind::kCount, 1},     {"objects", Kind::kCount, 2},
                   {"shared", Kind::kCount},        {"shared_accesses", Kind::kCount, 3},
                   {"most_by", Kind::kTail, 4, 12}, {"most_share", Kind::kShare, 4}};
  table.if_empty = "none: each class is touched by one thread only";
  if (input.selection.accesses() == 0) table.if_empty = "no accesses";
  input.selection.need_objects(input.file);
  fill(input,
       "WITH per AS (SELECT gc_id, object, class_id, sum(n) AS n, count(*) AS threads FROM r_object "
       "GROUP BY gc_id, object, class_id), "
       "o AS (SELECT class_id, count(*) AS objects, sum(threads > 1) AS shared, "
       "coalesce(sum(n) FILTER (WHERE threads > 1), 0) AS shared_accesses FROM per GROUP BY class_id), "
       "most AS (SELECT t.class_id AS class_id, h.label AS thread, sum(t.count) AS n, row_number() OVER "
       "(PARTITION BY t.class_id ORDER BY sum(t.count) DESC, h.label) AS rank FROM r_count t "
       "LEFT JOIN r_thread h ON h.id = t.thread_id GROUP BY t.class_id, t.thread_id) "
       "SELECT c.label AS class, count(DISTINCT t.thread_id) AS threads, "
       "count(DISTINCT CASE WHEN t.op <> 'load' THEN t.thread_id END) AS storing, "
       "coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads, "
       "coalesce(sum(t.count) FILTER (WHERE t.op <> 'load'), 0) AS stores, max(o.objects), max(o.shared) AS shared, "
       "max(o.shared_accesses) AS shared_accesses, max(m.thread), round(100.0 * max(m.n) / sum(t.count), 2) "
       "FROM r_count t JOIN r_class c ON c.id = t.class_id LEFT JOIN o ON o.class_id = t.class_id "
       "LEFT JOIN most m ON m.class_id = t.class_id AND m.rank = 1 "
       "GROUP BY t.class_id HAVING count(DISTINCT t.thread_id) > 1 "
       "ORDER BY shared_accesses DESC, sum(t.count) DESC, class",
       &table);
  if (!table.rows.empty()) {
    std::string rows = input.selection.about_rows();
    table.notes.push_back(
        "storing: threads that store; shared: objects that two threads or more touch between two "
        "collections, and the accesses of these" +
        (rows.empty() ? std::string() : "; " + rows));
  }
  return table;
}

namespace {

// What one thread did at one address of a cache line.
struct Touch {
  int64_t address = 0, end = 0, thread = 0, stores = 0, touches = 0;
  size_t place = 0;  // index of its name
};

// Stores at one place, touches at another by other threads; of one line, or of all.
struct Conflict {
  int64_t lines = 0, stores = 0, touches = 0, worst = 0, worst_line = 0;
  std::set<int64_t> storing, touching;
};
using Conflicts = std::map<std::pair<size_t, size_t>, Conflict>;

bool conflict(const Touch& a, const Touch& b) {
  return a.stores > 0 && a.thread != b.thread && (b.end <= a.address || a.end <= b.address);
}

void add_line(const std::vector<Touch>& touches, int64_t line, Conflicts* all) {
  Conflicts of_line;
  for (const Touch& a : touches) {
    std::set<size_t> met;
    for (const Touch& b : touches) {
      if (conflict(a, b)) met.insert(b.place);
    }
    for (size_t place : met) {
      Conflict& found = of_line[{a.place, place}];
      found.stores += a.stores;
      found.storing.insert(a.thread);
    }
  }
  for (const Touch& b : touches) {
    std::set<size_t> met;
    for (const Touch& a : touches) {
      if (conflict(a, b)) met.insert(a.place);
    }
    for (size_t place : met) {
      Conflict& found = of_line[{place, b.place}];
      found.touches += b.touches;
      found.touching.insert(b.thread);
    }
  }
  for (const auto& [places, found] : of_line) {
    Conflict& sum = (*all)[places];
    ++sum.lines;
    sum.stores += found.stores;
    sum.touches += found.touches;
    sum.storing.insert(found.storing.begin(), found.storing.end());
    sum.touching.insert(found.touching.begin(), found.touching.end());
    int64_t weight = std::min(found.stores, found.touches);
    if (weight > sum.worst) {
      sum.worst = weight;
      sum.worst_line = line;
    }
  }
}

// An object's creation is left out: nobody else has the object then.
constexpr const char* kTouches =
    "WITH places AS (SELECT gc_id, address >> 6 AS line, address, max(size) AS size, thread_id, class_id, field_id, "
    "part, sum(op <> 'load') AS stores, count(*) AS n FROM r_row "
    "WHERE class_id IS NOT NULL AND part IN ('field', 'static', 'element', 'length', 'mark') "
    "GROUP BY gc_id, line, address, thread_id, class_id, field_id, part), "
    "hot AS (SELECT gc_id, line FROM places GROUP BY gc_id, line HAVING sum(stores) > 0 AND "
    "min(thread_id) <> max(thread_id) AND min(address) <> max(address)) "
    "SELECT p.gc_id, p.line, p.address, p.address + p.size, p.thread_id, p.stores, p.n, "
    "c.label || '.' || coalesce(f.name, l.label, '[unknown]') "
    "FROM places p JOIN hot h ON h.gc_id IS p.gc_id AND h.line = p.line JOIN r_class c ON c.id = p.class_id "
    "LEFT JOIN main.field f ON f.id = p.field_id LEFT JOIN r_part l ON l.part = p.part "
    "ORDER BY p.gc_id, p.line, p.address, p.thread_id";

}  // namespace

Table false_sharing_section(const SectionInput& input) {
  Table table;
  table.title = "False sharing: lines stored by one thread, touched elsewhere by another";
  table.columns = {{"stored", Kind::kText, 0, 20}, {"touched", Kind::kText, 0, 20}, {"worst_line", Kind::kCount},
                   {"lines", Kind::kCount},        {"stores", Kind::kCount, 1},     {"touches", Kind::kCount, 1},
                   {"storing", Kind::kCount, 2},   {"touching", Kind::kCount, 2},   {"at", Kind::kTail, 3, 12}};
  table.if_empty = "none in the single rows";
  if (input.selection.single_rows() == 0) table.if_empty = "no single rows were kept (events=off)";
  if (input.selection.accesses() == 0) table.if_empty = "no accesses";
  std::map<std::string, size_t> places;
  std::vector<std::string> names;
  Conflicts all;
  std::vector<Touch> of_line;
  std::pair<int64_t, int64_t> current;
  input.file.each(kTouches, {}, [&](const CellRow& row) {
    std::pair<int64_t, int64_t> key = {integer_of(row[0]), integer_of(row[1])};
    if (key != current) {
      add_line(of_line, current.second, &all);
      of_line.clear();
      current = key;
    }
    auto [place, is_new] = places.emplace(text_of(row[7]), names.size());
    if (is_new) names.push_back(place->first);
    of_line.push_back({integer_of(row[2]), integer_of(row[3]), integer_of(row[4]), integer_of(row[5]),
                       integer_of(row[6]), place->second});
  });
  add_line(of_line, current.second, &all);

  std::vector<std::pair<std::pair<std::string, std::string>, const Conflict*>> order;
  for (const auto& [key, found] : all) order.push_back({{names[key.first], names[key.second]}, &found});
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    if (a.second->worst != b.second->worst) return a.second->worst > b.second->worst;
    if (a.second->stores != b.second->stores) return a.second->stores > b.second->stores;
    return a.first < b.first;
  });
  size_t shown = input.top == 0 ? order.size() : std::min(order.size(), input.top);
  for (size_t i = 0; i < shown; ++i) {
    const Conflict& found = *order[i].second;
    char at[32];
    snprintf(at, sizeof(at), "0x%llx", static_cast<unsigned long long>(found.worst_line) * 64);
    table.rows.push_back({order[i].first.first, order[i].first.second, found.worst, found.lines, found.stores,
                          found.touches, static_cast<int64_t>(found.storing.size()),
                          static_cast<int64_t>(found.touching.size()), std::string(at)});
  }
  if (shown < order.size()) {
    table.notes.push_back(with_commas(static_cast<int64_t>(order.size() - shown)) + " more (--top 0 shows all)");
  }
  std::string rows = input.selection.single_rows() == 0 ? std::string() : input.selection.about_rows();
  if (!table.rows.empty()) {
    table.notes.push_back(
        "lines of 64 bytes, between two collections; worst line: the smaller of stores and touches, of "
        "the line where it is largest; an object's creation is left out");
  }
  if (!rows.empty()) table.notes.push_back(rows);
  return table;
}

}  // namespace classaccess
