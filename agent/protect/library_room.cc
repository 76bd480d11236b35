#include "agent/protect/library_room.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"

namespace classaccess {
namespace {

constexpr uint64_t kReach = (2ull << 30) - (64 << 20);  // of the jump, less the libraries' own size
constexpr uint64_t kAlign = 1 << 20;
constexpr uint64_t kLeast = 64 << 20;
constexpr uint64_t kUserEnd = 1ull << 47;
// Left free next to what is mapped: libraries that are loaded later stay within reach, and
// the stack grows.
constexpr uint64_t kMargin = 64 << 20;
uint64_t g_stack_bytes;
RoomAround g_room;

struct Gap {
  uint64_t low = 0, high = 0;
  void take(uint64_t from, uint64_t to) {
    if (to > from && to - from > high - low) *this = {from, to};
  }
};

struct Gaps {
  Gap below, above;
};

// The largest gaps of the address space in [text - kReach, text) and (text, text + kReach].
class Finder {
 public:
  explicit Finder(uint64_t text) : text_(text) {}

  // Mappings come in order of their addresses.
  void mapping(uint64_t low, uint64_t high) {
    if (low >= kUserEnd) return;  // vsyscall
    gap(last_, low);
    last_ = high;
  }
  const Gaps& end() {
    gap(last_, kUserEnd);
    return gaps_;
  }

 private:
  void gap(uint64_t low, uint64_t high) {
    if (low != 0) low += kMargin;
    uint64_t margin = kMargin + (low > text_ ? g_stack_bytes : 0);
    high = high > margin ? high - margin : 0;
    gaps_.below.take(low > text_ - kReach ? low : text_ - kReach, high < text_ ? high : text_);
    gaps_.above.take(low > text_ ? low : text_, high < text_ + kReach ? high : text_ + kReach);
  }

  uint64_t text_, last_ = 0;
  Gaps gaps_;
};

// Calls f(low, high) for each line of /proc/self/maps.
template <typename F>
bool for_each_mapping(F&& f) {
  long fd = raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  char buffer[4096];
  uint64_t number = 0, low = 0;
  enum { kLow, kHigh, kRest } part = kLow;
  long got;
  while ((got = raw_syscall(SYS_read, fd, reinterpret_cast<long>(buffer), sizeof(buffer))) > 0) {
    for (long i = 0; i < got; ++i) {
      char c = buffer[i];
      if (c == '\n') {
        part = kLow;
        number = 0;
      } else if (part == kLow && c == '-') {
        low = number;
        number = 0;
        part = kHigh;
      } else if (part == kHigh && c == ' ') {
        f(low, number);
        part = kRest;
      } else if (part != kRest) {
        number = number * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      }
    }
  }
  raw_syscall(SYS_close, fd);
  return got == 0;
}

void reserve(Gap gap, uint64_t* begin, uint64_t* end) {
  uint64_t low = (gap.low + kAlign - 1) & ~(kAlign - 1), high = gap.high & ~(kAlign - 1);
  if (high < low + kLeast || !reserve_range(low, high)) return;
  *begin = low;
  *end = high;
}

}  // namespace

void reserve_library_room(uint64_t text) {
  rlimit limit;
  if (g_room.low_end != g_room.low_begin || g_room.high_end != g_room.high_begin) return;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return;
  rlimit stack;
  g_stack_bytes = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY ? stack.rlim_cur : 0;
  Finder finder(text);
  if (!for_each_mapping([&](uint64_t low, uint64_t high) { finder.mapping(low, high); })) return;
  const Gaps& gaps = finder.end();
  reserve(gaps.below, &g_room.low_begin, &g_room.low_end);
  reserve(gaps.above, &g_room.high_begin, &g_room.high_end);
}

RoomAround library_room() { return g_room; }

void release_library_room() {
  if (g_room.low_end != g_room.low_begin) {
    munmap(reinterpret_cast<void*>(g_room.low_begin), g_room.low_end - g_room.low_begin);
  }
  if (g_room.high_end != g_room.high_begin) {
    munmap(reinterpret_cast<void*>(g_room.high_begin), g_room.high_end - g_room.high_begin);
  }
  g_room = {};
}

}  // namespace classaccess
