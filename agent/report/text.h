// Text for terminals and files: widths, escapes, numbers.
// Context: the classaccess command. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace classaccess {

// Columns that the text takes in a terminal: wide characters (CJK, emoji) two, combining ones none.
size_t display_width(std::string_view utf8);
// Control characters as \n, \t, \x1b; what is no UTF-8 as U+FFFD. A name can then neither break a
// line nor send a sequence to the terminal.
std::string printable(std::string_view text);
// At most `width` columns. What is cut is at the front (a class name's end tells more) or at the
// back; two dots stand for it.
std::string cut_front(const std::string& text, size_t width);
std::string cut_back(const std::string& text, size_t width);
std::string pad_right(const std::string& text, size_t width);
std::string pad_left(const std::string& text, size_t width);
// Lines of at most `width` columns, broken at blanks and commas where there are any.
std::vector<std::string> wrap(const std::string& text, size_t width);

std::string with_commas(int64_t number);    // 1,234,567
std::string duration(int64_t nanoseconds);  // 1.234 ms
std::string fixed(double number, int digits);

// A CSV field (RFC 4180) and a JSON string with its quotes.
std::string csv_field(const std::string& text);
std::string json_string(std::string_view text);

}  // namespace classaccess
