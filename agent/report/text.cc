#include "agent/report/text.h"

#include <stdio.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace classaccess {
namespace {

constexpr char32_t kMalformed = 0xfffd;

// The character at *at, which moves behind it.
char32_t next_character(std::string_view text, size_t* at) {
  auto byte = [&](size_t i) -> uint8_t { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  uint8_t first = byte((*at)++);
  if (first < 0x80) return first;
  int more = first >= 0xf0 && first < 0xf5   ? 3
             : first >= 0xe0 && first < 0xf0 ? 2
             : first >= 0xc2 && first < 0xe0 ? 1
                                             : 0;
  if (more == 0) return kMalformed;
  char32_t value = first & (0x3f >> more);
  size_t end = *at;
  for (int i = 0; i < more; ++i, ++end) {
    if ((byte(end) & 0xc0) != 0x80) return kMalformed;
    value = value << 6 | (byte(end) & 0x3f);
  }
  bool too_long = value < (more == 3 ? 0x10000u : more == 2 ? 0x800u : 0x80u);
  if (too_long || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return kMalformed;
  *at = end;
  return value;
}

// Unicode's East Asian Width W and F, and the combining blocks, by range.
int columns_of(char32_t c) {
  struct Range {
    char32_t low, high;
  };
  static constexpr Range kNone[] = {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
  static constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
                                    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6},
                                    {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  auto within = [c](const Range& range) { return c >= range.low && c <= range.high; };
  if (std::any_of(std::begin(kNone), std::end(kNone), within)) return 0;
  return std::any_of(std::begin(kWide), std::end(kWide), within) ? 2 : 1;
}

}  // namespace

size_t display_width(std::string_view utf8) {
  size_t width = 0;
  for (size_t at = 0; at < utf8.size();) width += static_cast<size_t>(columns_of(next_character(utf8, &at)));
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    char32_t c = next_character(text, &at);
    // C1 controls and the marks that turn the direction of what follows are as harmful as C0.
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (control) {
      char escape[16];
      snprintf(escape, sizeof(escape), c < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else if (c == kMalformed) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(start, at - start);
    }
  }
  return out;
}

std::string cut_back(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width <= 2) return std::string(width, '.');
  size_t at = 0, used = 0;
  while (at < text.size()) {
    size_t next = at;
    auto columns = static_cast<size_t>(columns_of(next_character(text, &next)));
    if (used + columns > width - 2) break;
    used += columns;
    at = next;
  }
  return text.substr(0, at) + "..";
}

std::string cut_front(const std::string& text, size_t width) {
  size_t whole = display_width(text);
  if (whole <= width) return text;
  if (width <= 2) return std::string(width, '.');
  size_t at = 0, dropped = 0;
  while (at < text.size() && whole - dropped > width - 2) {
    dropped += static_cast<size_t>(columns_of(next_character(text, &at)));
  }
  if (at < text.size() && text[at] == '.') ++at;  // three dots look like something else
  return ".." + text.substr(at);
}

std::string pad_right(const std::string& text, size_t width) {
  size_t used = display_width(text);
  return used >= width ? text : text + std::string(width - used, ' ');
}

std::string pad_left(const std::string& text, size_t width) {
  size_t used = display_width(text);
  return used >= width ? text : std::string(width - used, ' ') + text;
}

std::vector<std::string> wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::string rest = text;
  while (display_width(rest) > width && width > 0) {
    size_t at = 0, used = 0, best = 0;
    while (at < rest.size()) {
      size_t next = at;
      auto columns = static_cast<size_t>(columns_of(next_character(rest, &next)));
      if (used + columns > width) break;
      used += columns;
      if (rest[at] == ' ' || rest[at] == ',') best = next;
      at = next;
    }
    if (at < rest.size() && rest[at] == ' ') best = at;
    size_t end = best != 0 ? best : std::max<size_t>(at, 1);
    std::string line = rest.substr(0, end);
    rest.erase(0, end);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    rest.erase(0, std::min(rest.find_first_not_of(' '), rest.size()));
    lines.push_back(line);
  }
  if (!rest.empty() || lines.empty()) lines.push_back(rest);
  return lines;
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string fixed(double number, int digits) {
  char text[64];
  snprintf(text, sizeof(text), "%.*f", digits, number);
  return text;
}

std::string duration(int64_t nanoseconds) {
  double value = static_cast<double>(nanoseconds);
  double size = std::fabs(value);
  if (size < 1e3) return std::to_string(nanoseconds) + " ns";
  if (size < 1e6) return fixed(value / 1e3, 2) + " us";
  if (size < 1e9) return fixed(value / 1e6, 2) + " ms";
  return fixed(value / 1e9, 2) + " s";
}

std::string csv_field(const std::string& text) {
  bool plain = text.find_first_of(",\"\r\n") == std::string::npos &&
               (text.empty() || (text.front() != ' ' && text.back() != ' '));
  if (plain) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    char32_t c = next_character(text, &at);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f || c == 0x2028 || c == 0x2029) {
      char escape[8];
      snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else if (c == kMalformed) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(start, at - start);
    }
  }
  return out + "\"";
}

}  // namespace classaccess
