// A table of the report, and its three forms: for a terminal, CSV, JSON.
// Context: the classaccess command. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "agent/report/cell.h"

namespace classaccess {

enum class Kind {
  kText,      // left aligned; too long: its front is cut
  kTail,      // left aligned; too long: its end is cut
  kWrapped,   // the last column: goes on in the next line
  kCount,     // 1,234
  kNumber,    // 1234, and text, right aligned
  kShare,     // percent, two digits
  kDuration,  // nanoseconds; 1.23 ms in a terminal
  kMeasured,  // kDuration if the next column says `ns`, else kCount
};

constexpr int kOnlyData = 100;  // rank of a column that a terminal never shows

struct Column {
  std::string name;  // key in CSV and JSON; `_` is a blank in a terminal
  Kind kind = Kind::kText;
  // Too narrow a terminal loses the columns of the highest rank first; 0 is never left out.
  int rank = 0;
  size_t least = 12;  // columns that a text keeps before others are left out
};

struct Table {
  std::string name;   // the section's, as on the command line
  std::string title;  // one line
  std::vector<Column> columns;
  std::vector<CellRow> rows;
  // In a terminal the first column's value is a line of its own above the rows that have it,
  // followed by what stands here for it (in the order of the values).
  bool grouped = false;
  std::vector<std::string> group_notes;
  std::vector<std::string> notes;  // lines below
  std::string if_empty;            // in place of rows, when there are none
};

std::string table_as_text(const Table& table, size_t width);
std::string table_as_csv(const Table& table);
// {"title": ..., "notes": [...], "rows": [{...}, ...]}
std::string table_as_json(const Table& table, const std::string& indent);

}  // namespace classaccess
