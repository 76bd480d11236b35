// Each class's layout: where its fields are, how often each is touched.
#include <algorithm>
#include <cmath>
#include <map>

#include "agent/report/sections.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

// Of the accesses of a class's fields: what the most used ones that make this share are, and below
// which share a field is cold.
constexpr double kHotShare = 0.8, kColdShare = 0.01;

struct Counts {
  int64_t accesses = 0, loads = 0, stores = 0, rmws = 0, threads = 0;
};

struct FieldRow {
  std::string name, type, declared;
  Cell offset, size;
  bool is_field = false, is_static = false;
  Counts counts;
  std::string state;
};

Counts counts_from(const CellRow& row, size_t first) {
  return {integer_of(row[first]), integer_of(row[first + 1]), integer_of(row[first + 2]), integer_of(row[first + 3]),
          integer_of(row[first + 4])};
}

bool is_reference(const std::string& type) {
  for (const char* primitive : {"boolean", "byte", "char", "short", "int", "long", "float", "double"}) {
    if (type == primitive) return false;
  }
  return true;
}

// Of a reference the recording's accesses tell; 0: nobody has touched one.
Cell size_of(const std::string& type, int64_t reference) {
  static const std::map<std::string, int64_t> kSizes = {{"boolean", 1}, {"byte", 1}, {"char", 2},  {"short", 2},
                                                        {"int", 4},     {"long", 8}, {"float", 4}, {"double", 8}};
  auto it = kSizes.find(type);
  if (it != kSizes.end()) return it->second;
  return reference != 0 ? Cell(reference) : Cell();
}

int64_t reference_size(RecordingFile& file) {
  int64_t largest = 0;
  file.each(
      "SELECT f.type, max(t.bytes / t.count) FROM main.access_count t JOIN main.field f ON f.id = t.field_id "
      "WHERE t.count > 0 GROUP BY f.type",
      {}, [&](const CellRow& row) {
        if (is_reference(text_of(row[0]))) largest = std::max(largest, integer_of(row[1]));
      });
  return largest == 0 ? 0 : largest > 4 ? 8 : 4;
}

void judge(std::vector<FieldRow>* rows) {
  int64_t sum = 0;
  std::vector<FieldRow*> fields;
  for (FieldRow& row : *rows) {
    if (!row.is_field) continue;
    sum += row.counts.accesses;
    fields.push_back(&row);
  }
  std::stable_sort(fields.begin(), fields.end(),
                   [](const FieldRow* a, const FieldRow* b) { return a->counts.accesses > b->counts.accesses; });
  int64_t before = 0;
  for (FieldRow* field : fields) {
    const Counts& counts = field->counts;
    bool hot = counts.accesses > 0 && static_cast<double>(before) < kHotShare * static_cast<double>(sum);
    before += counts.accesses;
    if (counts.accesses == 0) {
      field->state = "not touched";
    } else if (counts.loads + counts.rmws == 0) {
      field->state = hot ? "never read, hot" : "never read";
    } else if (hot) {
      field->state = "hot";
    } else if (static_cast<double>(counts.accesses) < kColdShare * static_cast<double>(sum)) {
      field->state = "cold";
    }
  }
}

// Bytes between two fields, and behind the last one, that belong to none.
std::vector<FieldRow> with_gaps(std::vector<FieldRow> fields, const Cell& instance_size) {
  std::vector<FieldRow> all;
  Cell end;  // of the last field, where it is known
  auto gap = [&](int64_t until) {
    if (is_null(end) || until <= integer_of(end)) return;
    FieldRow row;
    row.name = "(gap)";
    row.offset = end;
    row.size = until - integer_of(end);
    all.push_back(row);
  };
  for (FieldRow& field : fields) {
    gap(integer_of(field.offset));
    end = is_null(field.size) ? Cell() : Cell(integer_of(field.offset) + integer_of(field.size));
    all.push_back(field);
  }
  if (!is_null(instance_size)) gap(integer_of(instance_size));
  return all;
}

constexpr const char* kSums =
    "sum(count), coalesce(sum(count) FILTER (WHERE op = 'load'), 0), coalesce(sum(count) FILTER (WHERE op = 'store'), "
    "0), coalesce(sum(count) FILTER (WHERE op = 'rmw'), 0), count(DISTINCT thread_id)";

// Header words, then the fields by offset with those of the super classes, then static ones.
std::vector<FieldRow> layout_of(const SectionInput& input, const Cell& id, const Cell& instance_size,
                                int64_t reference) {
  RecordingFile& file = input.file;
  std::vector<FieldRow> rows, fields, statics;
  file.each(std::string("SELECT coalesce(p.label, '[unknown]'), ") + kSums +
                " FROM r_count t LEFT JOIN r_part p ON p.part = t.part WHERE class_id IS ?1 AND field_id IS NULL "
                "GROUP BY 1 ORDER BY t.part = 'mark' DESC, t.part = 'klass' DESC, t.part = 'length' DESC, 1",
            {id}, [&](const CellRow& row) {
              FieldRow part;
              part.name = text_of(row[0]);
              part.counts = counts_from(row, 1);
              rows.push_back(part);
            });
  // A damaged file could have a circle of super classes.
  file.each(std::string("WITH RECURSIVE up(id, depth) AS (SELECT ?1, 0 UNION ALL SELECT c.super_id, depth + 1 "
                        "FROM main.class c JOIN up ON c.id = up.id WHERE c.super_id IS NOT NULL AND depth < 1000), "
                        "chain AS (SELECT id, min(depth) AS depth FROM up GROUP BY id) "
                        "SELECT f.name, f.type, f.offset, f.is_static, d.name, h.depth, n.* FROM chain h "
                        "JOIN main.field f ON f.class_id = h.id JOIN main.class d ON d.id = f.class_id "
                        "LEFT JOIN (SELECT field_id, ") +
                kSums +
                " FROM r_count WHERE class_id IS ?1 GROUP BY field_id) n ON n.field_id = f.id "
                "WHERE NOT f.is_static OR h.depth = 0 ORDER BY f.offset, h.depth DESC, f.id",
            {id}, [&](const CellRow& row) {
              FieldRow field;
              field.name = text_of(row[0]);
              field.type = text_of(row[1]);
              field.offset = row[2];
              field.size = size_of(field.type, reference);
              field.is_field = true;
              field.is_static = integer_of(row[3]) != 0;
              if (integer_of(row[5]) > 0) field.declared = text_of(row[4]);
              field.counts = counts_from(row, 7);
              (field.is_static ? statics : fields).push_back(field);
            });
  for (FieldRow& field : with_gaps(std::move(fields), instance_size)) rows.push_back(std::move(field));
  for (FieldRow& field : statics) {
    field.name = "static " + field.name;
    rows.push_back(std::move(field));
  }
  judge(&rows);
  return rows;
}

}  // namespace

Table fields_section(const SectionInput& input) {
  Table table;
  table.title = "Fields in their classes' layout";
  table.grouped = true;
  table.columns = {{"class", Kind::kText, 0, 24},
                   {"offset", Kind::kNumber},
                   {"size", Kind::kNumber},
                   {"field", Kind::kTail, 0, 18},
                   {"type", Kind::kText, 4, 10},
                   {"accesses", Kind::kCount, 2},
                   {"share", Kind::kShare},
                   {"loads", Kind::kCount},
                   {"stores", Kind::kCount},
                   {"rmws", Kind::kCount, 3},
                   {"threads", Kind::kCount, 1},
                   {"state", Kind::kTail, 0, 11},
                   {"inherited_from", Kind::kText, 5, 12}};
  table.if_empty = input.selection.description().empty() ? "no accesses" : "no accesses of what was selected";
  int64_t reference = reference_size(input.file);
  std::vector<CellRow> classes = input.file.rows(
      "SELECT c.id, c.label, k.instance_size, sum(t.count) AS n, k.kind FROM r_count t JOIN r_class c ON c.id = "
      "t.class_id JOIN main.class k ON k.id = c.id GROUP BY c.id ORDER BY n DESC, c.label");
  size_t shown = input.top == 0 ? classes.size() : std::min(classes.size(), input.top);
  for (size_t i = 0; i < shown; ++i) {
    const CellRow& klass = classes[i];
    int64_t sum = integer_of(klass[3]);
    std::string note = with_commas(sum) + " accesses";
    if (!is_null(klass[2])) note = with_commas(integer_of(klass[2])) + " bytes, " + note;
    table.group_notes.push_back(note);
    for (const FieldRow& row : layout_of(input, klass[0], klass[2], reference)) {
      bool gap = !row.is_field && !is_null(row.size);
      CellRow cells = {klass[1], row.offset, row.size, row.name, row.type.empty() ? Cell() : Cell(row.type)};
      if (gap) {
        cells.resize(table.columns.size());
      } else {
        const Counts& n = row.counts;
        double part = static_cast<double>(n.accesses) / static_cast<double>(std::max<int64_t>(sum, 1));
        double share = std::round(10000.0 * part) / 100.0;
        cells.insert(cells.end(), {n.accesses, share, n.loads, n.stores, n.rmws, n.threads});
        cells.push_back(row.state.empty() ? Cell() : Cell(row.state));
        cells.push_back(row.declared.empty() ? Cell() : Cell(row.declared));
      }
      table.rows.push_back(std::move(cells));
    }
  }
  keep_if_used("rmws", &table);
  if (shown < classes.size()) {
    table.notes.push_back(with_commas(static_cast<int64_t>(classes.size() - shown)) +
                          " more classes (--top 0 shows all)");
  }
  if (!table.rows.empty()) {
    table.notes.push_back("hot: the fewest fields that make 80 % of the class's field accesses; cold: under 1 %");
  }
  if (input.selection.has_times() && input.selection.rows_are_part())
    table.notes.push_back(input.selection.about_rows());
  return table;
}

}  // namespace classaccess
