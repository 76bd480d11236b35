#include "agent/report/table.h"

#include <algorithm>
#include <cmath>

#include "agent/report/text.h"

namespace classaccess {
namespace {

constexpr const char* kBetween = "  ";
constexpr size_t kBetweenWidth = 2;

bool is_text(Kind kind) { return kind == Kind::kText || kind == Kind::kTail || kind == Kind::kWrapped; }

std::string title_of(const Column& column) {
  std::string title = column.name;
  std::replace(title.begin(), title.end(), '_', ' ');
  return column.kind == Kind::kShare ? title + " %" : title;
}

std::string cell_as_text(const Cell& cell, Kind kind) {
  if (is_null(cell)) return is_text(kind) ? "" : "-";
  if (const std::string* text = std::get_if<std::string>(&cell)) return printable(*text);
  if (kind == Kind::kDuration) return duration(integer_of(cell));
  if (const double* number = std::get_if<double>(&cell)) return fixed(*number, 2);
  int64_t number = integer_of(cell);
  if (kind == Kind::kShare) return fixed(static_cast<double>(number), 2);
  bool commas = kind == Kind::kCount || kind == Kind::kMeasured || kind == Kind::kWrapped;
  return commas ? with_commas(number) : std::to_string(number);
}

std::string real_as_text(double number) {
  std::string text = fixed(number, 6);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// The columns that are shown and how wide each is.
struct Layout {
  std::vector<size_t> columns, widths;
  std::vector<std::string> left_out;
};

Layout fit(const Table& table, const std::vector<std::vector<std::string>>& cells, size_t width) {
  Layout layout;
  std::vector<size_t> natural(table.columns.size());
  for (size_t i = 0; i < table.columns.size(); ++i) {
    natural[i] = display_width(title_of(table.columns[i]));
    for (const auto& row : cells) natural[i] = std::max(natural[i], display_width(row[i]));
    if ((!table.grouped || i > 0) && table.columns[i].rank != kOnlyData) layout.columns.push_back(i);
  }
  auto least = [&](size_t i) {
    const Column& column = table.columns[i];
    size_t title = display_width(title_of(column));
    return is_text(column.kind) ? std::min(natural[i], std::max(column.least, title)) : natural[i];
  };
  auto needed = [&] {
    size_t sum = layout.columns.empty() ? 0 : kBetweenWidth * (layout.columns.size() - 1);
    for (size_t i : layout.columns) sum += least(i);
    return sum;
  };
  while (needed() > width) {
    auto worst = std::max_element(layout.columns.begin(), layout.columns.end(), [&](size_t a, size_t b) {
      return std::pair(table.columns[a].rank, a) < std::pair(table.columns[b].rank, b);
    });
    if (worst == layout.columns.end() || table.columns[*worst].rank == 0) break;
    layout.left_out.push_back(title_of(table.columns[*worst]));
    layout.columns.erase(worst);
  }
  size_t used = needed();
  for (size_t i : layout.columns) layout.widths.push_back(least(i));
  // What is left goes to the texts that are cut, the narrowest first.
  for (; used < width; ++used) {
    size_t* next = nullptr;
    for (size_t k = 0; k < layout.columns.size(); ++k) {
      if (layout.widths[k] >= natural[layout.columns[k]]) continue;
      if (next == nullptr || layout.widths[k] < *next) next = &layout.widths[k];
    }
    if (next == nullptr) break;
    ++*next;
  }
  return layout;
}

std::string without_end_blanks(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "\n";
}

// One row; a wrapped last column may make it several lines.
std::string row_lines(const Table& table, const Layout& layout, const std::vector<std::string>& row) {
  std::string line;
  std::vector<std::string> more;
  size_t before_last = 0;
  for (size_t k = 0; k < layout.columns.size(); ++k) {
    size_t i = layout.columns[k], width = layout.widths[k];
    if (k > 0) line += kBetween;
    before_last = display_width(line);
    Kind kind = table.columns[i].kind;
    if (kind == Kind::kWrapped) {
      more = wrap(row[i], width);
      line += more[0];
    } else if (kind == Kind::kText) {
      line += pad_right(cut_front(row[i], width), width);
    } else if (kind == Kind::kTail) {
      line += pad_right(cut_back(row[i], width), width);
    } else {
      line += pad_left(row[i], width);
    }
  }
  std::string text = without_end_blanks(line);
  for (size_t i = 1; i < more.size(); ++i) text += without_end_blanks(std::string(before_last, ' ') + more[i]);
  return text;
}

std::string header_line(const Table& table, const Layout& layout) {
  std::string line;
  for (size_t k = 0; k < layout.columns.size(); ++k) {
    const Column& column = table.columns[layout.columns[k]];
    if (k > 0) line += kBetween;
    std::string title = title_of(column);
    line += is_text(column.kind) ? pad_right(title, layout.widths[k]) : pad_left(title, layout.widths[k]);
  }
  return without_end_blanks(line);
}

void add_note(std::string* text, const std::string& note, size_t width) {
  std::string mark = "  ";
  for (const std::string& line : wrap(note, width > 4 ? width - 2 : width)) *text += mark + line + "\n";
}

}  // namespace

std::string table_as_text(const Table& table, size_t width) {
  std::string text = "== " + table.title + "\n";
  if (table.rows.empty()) {
    add_note(&text, table.if_empty, width);
  } else {
    std::vector<std::vector<std::string>> cells;
    for (const CellRow& row : table.rows) {
      cells.emplace_back();
      for (size_t i = 0; i < table.columns.size(); ++i) {
        Kind kind = table.columns[i].kind;
        if (kind == Kind::kMeasured && text_of(row[i + 1]) == "ns") kind = Kind::kDuration;
        cells.back().push_back(cell_as_text(row[i], kind));
      }
    }
    Layout layout = fit(table, cells, width);
    if (!table.grouped) text += header_line(table, layout);
    size_t groups = 0;
    for (size_t r = 0; r < cells.size(); ++r) {
      if (table.grouped && (r == 0 || cells[r][0] != cells[r - 1][0])) {
        std::string note = groups < table.group_notes.size() ? "  " + table.group_notes[groups] : "";
        ++groups;
        size_t room = width > display_width(note) ? width - display_width(note) : 0;
        text += std::string(r == 0 ? "" : "\n") + cut_front(cells[r][0], std::max<size_t>(room, 12)) + note + "\n";
        text += header_line(table, layout);
      }
      text += row_lines(table, layout, cells[r]);
    }
    if (!layout.left_out.empty()) {
      std::sort(layout.left_out.begin(), layout.left_out.end());
      std::string names;
      for (const std::string& name : layout.left_out) names += (names.empty() ? "" : ", ") + name;
      add_note(&text, "left out, no room: " + names, width);
    }
  }
  for (const std::string& note : table.notes) add_note(&text, note, width);
  return text;
}

std::string table_as_csv(const Table& table) {
  std::string text;
  for (size_t i = 0; i < table.columns.size(); ++i) text += (i > 0 ? "," : "") + csv_field(table.columns[i].name);
  text += "\n";
  for (const CellRow& row : table.rows) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (i > 0) text += ",";
      if (const int64_t* number = std::get_if<int64_t>(&row[i])) text += std::to_string(*number);
      if (const double* number = std::get_if<double>(&row[i])) text += real_as_text(*number);
      if (const std::string* value = std::get_if<std::string>(&row[i])) text += csv_field(*value);
    }
    text += "\n";
  }
  return text;
}

std::string table_as_json(const Table& table, const std::string& indent) {
  std::string text = "{\n" + indent + "  \"title\": " + json_string(table.title) + ",\n" + indent + "  \"notes\": [";
  for (size_t i = 0; i < table.notes.size(); ++i) text += (i > 0 ? ", " : "") + json_string(table.notes[i]);
  text += "],\n" + indent + "  \"rows\": [";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    text += (r > 0 ? ",\n" : "\n") + indent + "    {";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const Cell& cell = table.rows[r][i];
      text += (i > 0 ? ", " : "") + json_string(table.columns[i].name) + ": ";
      if (is_null(cell)) text += "null";
      if (const int64_t* number = std::get_if<int64_t>(&cell)) text += std::to_string(*number);
      if (const double* number = std::get_if<double>(&cell)) {
        text += std::isfinite(*number) ? real_as_text(*number) : "null";
      }
      if (const std::string* value = std::get_if<std::string>(&cell)) text += json_string(*value);
    }
    text += "}";
  }
  return text + (table.rows.empty() ? "]\n" : "\n" + indent + "  ]\n") + indent + "}";
}

}  // namespace classaccess
