// The window model a second time, as simply as it can be said, for the tests to compare with: a list of open
// pages, and walks over pages in orders that are known.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace classaccess::test {

struct Simulation {
  explicit Simulation(size_t pages) : window(pages) {}

  void touch(uint64_t page);
  void forget(uint64_t first, uint64_t end);
  uint64_t counted() const;

  size_t window;
  std::deque<uint64_t> open;  // the oldest first
  bool any = false;
  uint64_t last = 0;
  std::map<uint64_t, uint64_t> counts;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> transitions;
};

// "sequential", "stride", "random", "ping-pong": `touches` page numbers below `pages`.
std::vector<uint64_t> walk(const std::string& order, uint64_t pages, size_t touches);
inline const char* const kOrders[] = {"sequential", "stride", "random", "ping-pong"};

}  // namespace classaccess::test
