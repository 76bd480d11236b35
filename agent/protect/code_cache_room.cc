#include "agent/protect/code_cache_room.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace classaccess {
namespace {

constexpr uint64_t kSide = 2ull << 30;
constexpr uint64_t kAlign = 1 << 20;
constexpr size_t kLeast = 1 << 20;

struct Room {
  uint64_t low = 0, inner_low = 0, inner_high = 0, high = 0;
};
constexpr int kMaxRooms = 24;
Room g_rooms[kMaxRooms];
int g_room_count;
bool g_wanted;

}  // namespace

void want_code_cache_room() { g_wanted = true; }

uint64_t reserve_with_room(size_t bytes) {
  rlimit limit;
  if (bytes < kLeast || g_room_count == kMaxRooms || !g_wanted) return 0;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return 0;
  uint64_t inner = (bytes + 4095) & ~4095ull;
  void* memory = mmap(nullptr, inner + 2 * kSide, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 0;
  auto low = reinterpret_cast<uint64_t>(memory);
  g_rooms[g_room_count++] = {low, low + kSide, low + kSide + inner, low + kSide + inner + kSide};
  return low + kSide;
}

RoomAround take_code_cache_room(uint64_t code) {
  static RoomAround taken;
  g_wanted = false;
  for (int i = 0; i < g_room_count; ++i) {
    const Room& room = g_rooms[i];
    if (code >= room.inner_low && code < room.inner_high) {
      taken.low_begin = (room.low + kAlign - 1) & ~(kAlign - 1);
      taken.low_end = room.inner_low & ~(kAlign - 1);
      taken.high_begin = (room.inner_high + kAlign - 1) & ~(kAlign - 1);
      taken.high_end = room.high & ~(kAlign - 1);
      continue;
    }
    munmap(reinterpret_cast<void*>(room.low), room.inner_low - room.low);
    munmap(reinterpret_cast<void*>(room.inner_high), room.high - room.inner_high);
  }
  g_room_count = 0;
  return taken;
}

}  // namespace classaccess
