// The heap's spaces: inside the reserved heap, ordered, apart from each other, and every object is in one.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "agent/hotspot/heap_regions.h"
#include "tests/unit/hotspot/layout_agent.h"

namespace classaccess::layout_test {
namespace {

HeapRegions g_regions;
std::vector<HeapSpace> g_spaces;

using Kind = HeapSpace::Kind;

size_t read() {
  if (g_spaces.empty()) {
    std::string reason = g_regions.create(g_state.vm, g_state.layout);
    check(reason.empty(), "spaces", reason);
    g_spaces.resize(g_regions.count() + 8);
  }
  size_t count = g_regions.read_spaces(g_spaces.data(), g_spaces.size());
  check(count == g_regions.count(), "spaces read", std::to_string(count));
  return count;
}

std::string text(const HeapSpace& s) {
  char line[120];
  std::snprintf(line, sizeof line, "kind %d %lx %lx %lx", static_cast<int>(s.kind), s.bottom, s.top, s.end);
  return line;
}

}  // namespace

void check_spaces() {
  size_t count = read();
  const VmLayout& l = g_state.layout;
  std::vector<HeapSpace> sorted(g_spaces.begin(), g_spaces.begin() + static_cast<std::ptrdiff_t>(count));
  for (const HeapSpace& s : sorted) {
    bool inside = s.bottom >= l.heap_low && s.end <= l.heap_high && s.bottom <= s.top && s.top <= s.end;
    check(inside && (s.kind != Kind::kOther || l.collector == Collector::kShenandoah), "space bounds", text(s));
    check(s.kind != Kind::kFree || s.top == s.bottom, "free space", text(s));
  }
  std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.bottom < b.bottom; });
  for (size_t i = 1; i < count; ++i) {
    check(sorted[i - 1].end <= sorted[i].bottom, "spaces apart", text(sorted[i - 1]) + " " + text(sorted[i]));
  }
  bool regions = l.collector == Collector::kG1 || l.collector == Collector::kShenandoah;
  if (regions) {
    uint64_t covered = 0;
    for (const HeapSpace& s : sorted) covered += s.end - s.bottom;
    check(covered == l.heap_high - l.heap_low, "regions cover the heap", std::to_string(covered));
  }
}

// Kind of the space that holds the object, or kFree.
void check_space_of(uint64_t object, uint64_t size, bool large_array) {
  size_t count = read();
  const HeapSpace* found = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (object >= g_spaces[i].bottom && object < g_spaces[i].end) found = &g_spaces[i];
  }
  bool ok =
      found != nullptr && found->kind != Kind::kFree && found->kind != Kind::kHumongousContinues && object < found->top;
  check(ok, "object in a space", std::to_string(object) + " " + (found != nullptr ? text(*found) : "none"));
  if (!ok) return;
  bool regions = g_state.layout.collector == Collector::kG1 || g_state.layout.collector == Collector::kShenandoah;
  if (regions && size > found->end - found->bottom) {
    check(found->kind == Kind::kHumongousStart && object == found->bottom, "humongous", text(*found));
  } else {
    check(object + size <= found->top, "object below top", text(*found));
  }
  if (regions && large_array) require_checks("humongous", 1);
  require_checks("object in a space", 1000);
}

}  // namespace classaccess::layout_test
