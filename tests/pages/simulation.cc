#include "tests/pages/simulation.h"

#include <algorithm>

namespace classaccess::test {

void Simulation::touch(uint64_t page) {
  if (std::find(open.begin(), open.end(), page) != open.end()) return;
  ++counts[page];
  if (any) ++transitions[{last, page}];
  any = true;
  last = page;
  if (open.size() == window) open.pop_front();
  open.push_back(page);
}

void Simulation::forget(uint64_t first, uint64_t end) {
  std::erase_if(open, [&](uint64_t page) { return page >= first && page < end; });
}

uint64_t Simulation::counted() const {
  uint64_t sum = 0;
  for (const auto& [page, count] : counts) sum += count;
  return sum;
}

std::vector<uint64_t> walk(const std::string& order, uint64_t pages, size_t touches) {
  std::vector<uint64_t> all;
  uint64_t random = 12345;
  for (size_t i = 0; i < touches; ++i) {
    if (order == "sequential") {
      all.push_back(i % pages);
    } else if (order == "stride") {
      all.push_back(i * 7 % pages);
    } else if (order == "random") {
      random = random * 6364136223846793005u + 1442695040888963407u;
      all.push_back((random >> 33) % pages);
    } else {
      all.push_back(i % 2 == 0 ? pages / 3 : pages / 2);
    }
  }
  return all;
}

}  // namespace classaccess::test
