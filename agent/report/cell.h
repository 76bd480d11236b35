// A value as SQLite gives it, and a row of them.
// Context: the classaccess command.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace classaccess {

// Empty: NULL.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;
using CellRow = std::vector<Cell>;

inline bool is_null(const Cell& cell) { return std::holds_alternative<std::monostate>(cell); }
inline int64_t integer_of(const Cell& cell) {
  if (const int64_t* number = std::get_if<int64_t>(&cell)) return *number;
  if (const double* number = std::get_if<double>(&cell)) return static_cast<int64_t>(*number);
  return 0;
}
inline std::string text_of(const Cell& cell) {
  const std::string* text = std::get_if<std::string>(&cell);
  return text != nullptr ? *text : std::string();
}

}  // namespace classaccess
