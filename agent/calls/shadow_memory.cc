#include "agent/calls/shadow_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>

#include "agent/base/raw_syscall.h"
#include "agent/base/reserve.h"

namespace classaccess {
namespace {

// Chunk numbers that have a shadow, by hash; 0: free. With kRefused: it cannot have one.
constexpr uint32_t kSlots = 1u << 15;
constexpr uint64_t kRefused = uint64_t{1} << 63;
std::atomic<uint64_t> g_chunks[kSlots];

bool map_chunk(uint64_t chunk) {
  uint64_t at = (chunk * kShadowChunk) ^ kShadowBit;
  long got = raw_syscall(SYS_mmap, static_cast<long>(at), kShadowChunk, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == static_cast<long>(at)) return true;
  if (got > 0) raw_syscall(SYS_munmap, got, kShadowChunk);  // kernels before 4.17 ignore NOREPLACE
  return false;
}

}  // namespace

bool map_shadow(uint64_t slot) {
  const uint64_t chunk = slot / kShadowChunk;
  uint32_t at = static_cast<uint32_t>(chunk * 0x9e3779b97f4a7c15ull >> 40) % kSlots;
  for (uint32_t i = 0; i < kSlots; ++i, at = (at + 1) % kSlots) {
    std::atomic<uint64_t>& row = g_chunks[at];
    uint64_t known = row.load(std::memory_order_acquire);
    if (known == chunk) return true;
    if (known == (chunk | kRefused)) return false;
    if (known != 0) continue;
    // Claimed as refused until it is mapped: another thread that comes meanwhile leaves its call untimed.
    if (!row.compare_exchange_strong(known, chunk | kRefused, std::memory_order_acq_rel)) {
      if (known == chunk) return true;
      if (known == (chunk | kRefused)) return false;
      continue;
    }
    if (!map_chunk(chunk)) return false;
    row.store(chunk, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace classaccess
