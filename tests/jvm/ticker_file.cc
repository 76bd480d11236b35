#include "tests/jvm/ticker_file.h"

#include <endian.h>

#include <cstring>

#include "tests/jvm/process.h"

namespace classaccess {
namespace {

constexpr size_t kLine = 16;

int64_t word_at(const std::string& bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return static_cast<int64_t>(be64toh(word));
}

}  // namespace

std::vector<TickerLine> ticker_lines(const std::string& name, int thread) {
  std::vector<TickerLine> lines;
  std::string bytes = read_text(name + "." + std::to_string(thread));
  for (size_t at = 0; at + kLine <= bytes.size(); at += kLine) {
    lines.push_back({static_cast<double>(word_at(bytes, at)) * 1e-9, word_at(bytes, at + 8)});
  }
  return lines;
}

int64_t ticker_stores_at(const std::vector<TickerLine>& lines, double seconds) {
  int64_t stores = 0;
  for (const TickerLine& line : lines) {
    if (line.seconds <= seconds) stores = line.stores;
  }
  return stores;
}

}  // namespace classaccess
