// What java-harness/Ticker.java told its files: how many stores each of its threads had done, and
// when. Readable while it runs and after kill -9.
// Context: test process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace classaccess {

struct TickerLine {
  double seconds;  // CLOCK_MONOTONIC
  int64_t stores;  // of this thread until then
};

// Lines of thread ticker-0 or ticker-1, oldest first; empty if the file is not there yet.
std::vector<TickerLine> ticker_lines(const std::string& name, int thread);

// Stores the thread had told of at that time; 0 before its first line.
int64_t ticker_stores_at(const std::vector<TickerLine>& lines, double seconds);

}  // namespace classaccess
