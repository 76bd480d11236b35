#include "tests/jvm/ticker_file.h"

#include <algorithm>
#include <cstring>

#include "tests/jvm/process.h"

namespace classaccess {
namespace {

// Ticker.HALF and the length of a line.
constexpr size_t kHalf = 1 << 16;
constexpr size_t kLine = 16;
constexpr size_t kLines = (kHalf - 8) / kLine;

int64_t word_at(const std::string& bytes, size_t at) {
  int64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

}  // namespace

std::vector<TickerLine> ticker_lines(const std::string& path, int thread) {
  std::vector<TickerLine> lines;
  std::string bytes = read_text(path);
  if (bytes.size() < 2 * kHalf) return lines;
  size_t base = static_cast<size_t>(thread) * kHalf;
  size_t written = static_cast<size_t>(word_at(bytes, base));
  for (size_t i = written - std::min(written, kLines); i < written; i++) {
    size_t at = base + 8 + (i % kLines) * kLine;
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
