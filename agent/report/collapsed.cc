#include "agent/report/collapsed.h"

#include <map>

#include "agent/report/text.h"

namespace classaccess {
namespace {

std::string frame(const std::string& name) {
  std::string text = printable(name);
  for (char& c : text) {
    if (c == ';') c = '_';
  }
  return text;
}

}  // namespace

std::string collapsed_stacks(RecordingFile& file) {
  // Two names may become the same frame: added up here, not in SQL.
  std::map<std::string, int64_t> stacks;
  file.each(
      "SELECT coalesce(c.label, '(not resolved)'), coalesce(s.method, s.symbol, s.library, '(' || s.kind || ' code)', "
      "'(unknown)'), coalesce(f.name, p.label, '[unknown]'), sum(t.count) FROM r_count t "
      "LEFT JOIN r_class c ON c.id = t.class_id LEFT JOIN main.site s ON s.id = t.site_id "
      "LEFT JOIN main.field f ON f.id = t.field_id LEFT JOIN r_part p ON p.part = t.part GROUP BY 1, 2, 3",
      {}, [&](const CellRow& row) {
        stacks[frame(text_of(row[0])) + ";" + frame(text_of(row[1])) + ";" + frame(text_of(row[2]))] +=
            integer_of(row[3]);
      });
  std::string text;
  for (const auto& [stack, weight] : stacks) text += stack + " " + std::to_string(weight) + "\n";
  return text;
}

}  // namespace classaccess
