#include "agent/base/reserve.h"

#include <atomic>

namespace classaccess {
namespace {

struct Block {
  void* memory;
  size_t bytes;
  int protection;
  bool used;
};
// About 30 a recording; what finds no row is never given back.
constexpr int kMaxBlocks = 128;
Block g_blocks[kMaxBlocks];
int g_count;
std::atomic_flag g_lock = ATOMIC_FLAG_INIT;

// Large tables would fill the space between the libraries: those loaded later would lie farther from the others, and
// from free memory, than a jump reaches. Null: wherever the kernel likes. Under the lock.
void* far_from_libraries(size_t bytes) {
  constexpr size_t kLarge = 16 << 20, kAlign = 2 << 20;
  static uint64_t next = uint64_t{1} << 45;
  if (bytes < kLarge) return nullptr;
  void* at = reinterpret_cast<void*>(next);
  next += (bytes + kAlign - 1) / kAlign * kAlign;
  return at;
}

class Lock {
 public:
  Lock() {
    while (g_lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Lock() { g_lock.clear(std::memory_order_release); }
};

}  // namespace

void* reserve_memory(size_t bytes, int protection, Keep keep) {
  Lock lock;
  for (int i = 0; keep == Keep::kRecording && i < g_count; ++i) {
    Block& block = g_blocks[i];
    if (block.used || block.bytes != bytes || block.protection != protection) continue;
    block.used = true;
    return block.memory;
  }
  void* memory = mmap(far_from_libraries(bytes), bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (keep == Keep::kRecording && g_count < kMaxBlocks) g_blocks[g_count++] = {memory, bytes, protection, true};
  return memory;
}

void recycle_reservations() {
  Lock lock;
  for (int i = 0; i < g_count; ++i) {
    Block& block = g_blocks[i];
    if (!block.used) continue;
    madvise(block.memory, block.bytes, MADV_DONTNEED);
    if (block.protection == PROT_NONE) mprotect(block.memory, block.bytes, PROT_NONE);
    block.used = false;
  }
}

}  // namespace classaccess
