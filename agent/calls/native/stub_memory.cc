#include "agent/calls/native/stub_memory.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "agent/base/reserve.h"

namespace classaccess {
namespace {

constexpr uint64_t kChunk = 256 << 10, kReach = 0x7ff00000, kLowest = 1 << 20, kHighest = uint64_t{1} << 47;

struct Chunk {
  uint64_t run;
  uint8_t* write;
  uint64_t used;
};
std::vector<Chunk> g_chunks;

bool within_reach(uint64_t at, uint64_t low, uint64_t high) {
  uint64_t end = at + kChunk;
  return (at >= high ? end - low : high - at) < kReach;
}

// Places to try, the nearest first.
std::vector<uint64_t> gaps_near(uint64_t low, uint64_t high) {
  std::vector<uint64_t> places;
  std::ifstream maps("/proc/self/maps");
  uint64_t free_from = kLowest;
  auto gap = [&](uint64_t from, uint64_t to) {
    from = (from + kChunk - 1) / kChunk * kChunk;
    to = to / kChunk * kChunk;
    if (from + kChunk > to) return;
    // Not beside what lies there: stacks and the heap grow.
    if (to <= low)
      places.push_back(to - kChunk);
    else
      places.push_back(std::min(from + (to - from) / 4 / kChunk * kChunk, from + 64 * kChunk));
    if (to > low && from + kChunk <= to) places.push_back(from);
  };
  for (std::string line; std::getline(maps, line);) {
    unsigned long from, to;
    if (sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2) continue;
    if (from > free_from) gap(free_from, from);
    free_from = to;
  }
  if (free_from < kHighest) gap(free_from, kHighest);
  std::erase_if(places, [&](uint64_t at) { return !within_reach(at, low, high); });
  std::sort(places.begin(), places.end(), [&](uint64_t a, uint64_t b) {
    auto distance = [&](uint64_t at) { return at > low ? at - low : low - at; };
    return distance(a) < distance(b);
  });
  return places;
}

bool map_chunk(uint64_t at, Chunk* out) {
  int file = memfd_create("classaccess-calls", MFD_CLOEXEC);
  if (file < 0) return false;
  void* run = MAP_FAILED;
  void* write = MAP_FAILED;
  if (ftruncate(file, kChunk) == 0) {
    run = mmap(reinterpret_cast<void*>(at), kChunk, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    write = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (run == reinterpret_cast<void*>(at) && write != MAP_FAILED) {
    *out = {at, static_cast<uint8_t*>(write), 0};
    return true;
  }
  if (run != MAP_FAILED) munmap(run, kChunk);
  if (write != MAP_FAILED) munmap(write, kChunk);
  return false;
}

}  // namespace

StubPlace take_stub(uint64_t low, uint64_t high, size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  auto take = [&](Chunk& chunk) {
    StubPlace place{chunk.run + chunk.used, chunk.write + chunk.used};
    chunk.used += bytes;
    return place;
  };
  for (Chunk& chunk : g_chunks) {
    if (chunk.used + bytes <= kChunk && within_reach(chunk.run, low, high)) return take(chunk);
  }
  for (uint64_t at : gaps_near(low, high)) {
    Chunk chunk;
    if (!map_chunk(at, &chunk)) continue;
    g_chunks.push_back(chunk);
    return take(g_chunks.back());
  }
  return {};
}

}  // namespace classaccess
