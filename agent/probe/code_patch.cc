#include "agent/probe/code_patch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"
#include "agent/base/safe_load.h"

namespace classaccess {
namespace {

// linux/membarrier.h
constexpr long kPrivateSyncCore = 32;
constexpr long kRegisterPrivateSyncCore = 64;
constexpr uint8_t kInt3 = 0xcc;

bool g_can_serialise = false;

bool swap_8(uint64_t at, uint64_t from, uint64_t to) {
  bool done;
  asm volatile("lock cmpxchgq %[to], (%[at])" : "=@ccz"(done), "+a"(from) : [at] "r"(at), [to] "r"(to) : "memory");
  return done;
}

bool swap_1(uint64_t at, uint8_t from, uint8_t to) {
  return __atomic_compare_exchange_n(reinterpret_cast<uint8_t*>(at), &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED);
}

constexpr uint64_t kLine = 64;

// The aligned block of `size` bytes that holds all of them; 0: there is none.
uint64_t block_of(uint64_t pc, size_t count, uint64_t size) {
  const uint64_t block = pc & ~(size - 1);
  return pc + count <= block + size ? block : 0;
}

// In one compare-and-swap of 8 bytes that lie in the block: whoever writes other bytes of them
// meanwhile is not overwritten. False: other bytes than `from` are there.
bool swap_in_block(uint64_t block, uint64_t size, uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  const uint64_t last = block + size - 8;
  const uint64_t at = pc < last ? pc : last;
  for (;;) {
    uint8_t old_bytes[8], new_bytes[8];
    memcpy(old_bytes, reinterpret_cast<const void*>(at), 8);
    if (memcmp(old_bytes + (pc - at), from, count) != 0) return false;
    memcpy(new_bytes, old_bytes, 8);
    memcpy(new_bytes + (pc - at), to, count);
    uint64_t before, after;
    memcpy(&before, old_bytes, 8);
    memcpy(&after, new_bytes, 8);
    if (swap_8(at, before, after)) return true;
  }
}

// Each step only where the one before still stands: HotSpot may have freed the code between
// two of them, and put other code there.
bool write_stepwise(uint64_t line, uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  uint8_t closed[CodePatch::kMaxBytes], ready[CodePatch::kMaxBytes];
  memcpy(closed, from, count);
  memcpy(ready, to, count);
  closed[0] = ready[0] = kInt3;
  if (!swap_in_block(line, kLine, pc, from, closed, count)) return false;
  CodePatch::serialise_cores();
  if (!swap_in_block(line, kLine, pc, closed, ready, count)) return false;
  CodePatch::serialise_cores();
  return swap_in_block(line, kLine, pc, ready, to, count);
}

// Over the border of two cache lines no swap of all bytes is to be had (a split lock).
bool write_bytewise(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  if (memcmp(reinterpret_cast<const void*>(pc), from, count) != 0) return false;
  if (!swap_1(pc, from[0], kInt3)) return false;
  CodePatch::serialise_cores();
  for (size_t i = 1; i < count; ++i) __atomic_store_n(reinterpret_cast<uint8_t*>(pc + i), to[i], __ATOMIC_SEQ_CST);
  CodePatch::serialise_cores();
  __atomic_store_n(reinterpret_cast<uint8_t*>(pc), to[0], __ATOMIC_SEQ_CST);
  return true;
}

// /proc/self/mem, open for as long as one patch takes: the program may close descriptors.
class TextFile {
 public:
  TextFile()
      : fd_(raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/mem"), O_RDWR | O_CLOEXEC, 0)) {}
  ~TextFile() {
    if (is_open()) raw_syscall(SYS_close, fd_);
  }
  TextFile(const TextFile&) = delete;
  bool is_open() const { return fd_ >= 0; }
  bool write(uint64_t at, const uint8_t* bytes, size_t count) const {
    return raw_syscall(SYS_pwrite64, fd_, reinterpret_cast<long>(bytes), static_cast<long>(count),
                       static_cast<long>(at)) == static_cast<long>(count);
  }

 private:
  long fd_;
};

}  // namespace

bool CodePatch::write_text(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  TextFile text;
  if (!g_can_serialise || !text.is_open()) return false;
  // The library may be gone.
  uint8_t now[kMaxBytes];
  if (safe_copy_prefix(now, pc, count) != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (now[i] != from[i]) return false;
  }
  const uint8_t int3 = kInt3;
  if (!text.write(pc, &int3, 1)) return false;
  bool done = serialise_cores() && (count == 1 || text.write(pc + 1, to + 1, count - 1));
  // Without its tail the old instruction stands again.
  if (!done && count > 1) text.write(pc + 1, from + 1, count - 1);
  serialise_cores();
  return text.write(pc, done ? to : from, 1) && done;
}

bool CodePatch::can_write_text() {
  const auto* own = reinterpret_cast<const uint8_t*>(&CodePatch::init);
  TextFile text;
  return g_can_serialise && text.is_open() && text.write(reinterpret_cast<uint64_t>(own), own, 1);
}

bool CodePatch::can_serialise() { return g_can_serialise; }

void CodePatch::init() { g_can_serialise = raw_syscall(SYS_membarrier, kRegisterPrivateSyncCore) == 0; }

bool CodePatch::serialise_cores() { return g_can_serialise && raw_syscall(SYS_membarrier, kPrivateSyncCore) == 0; }

bool CodePatch::is_exact(uint64_t pc, size_t count) { return block_of(pc, count, kLine) != 0; }

bool CodePatch::write(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  constexpr uint64_t kFetched = 16;
  if (uint64_t block = block_of(pc, count, kFetched)) return swap_in_block(block, kFetched, pc, from, to, count);
  if (!g_can_serialise) return false;
  if (uint64_t line = block_of(pc, count, kLine)) return write_stepwise(line, pc, from, to, count);
  return write_bytewise(pc, from, to, count);
}

}  // namespace classaccess
