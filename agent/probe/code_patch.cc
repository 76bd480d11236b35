#include "agent/probe/code_patch.h"

#include <string.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

// linux/membarrier.h
constexpr long kPrivateSyncCore = 32;
constexpr long kRegisterPrivateSyncCore = 64;
constexpr uint8_t kInt3 = 0xcc;

bool g_can_serialise = false;

bool swap_8(uint64_t at, uint64_t from, uint64_t to) {
  bool done;
  asm volatile("lock cmpxchgq %[to], (%[at])"
               : "=@ccz"(done), "+a"(from)
               : [at] "r"(at), [to] "r"(to)
               : "memory");
  return done;
}

bool swap_1(uint64_t at, uint8_t from, uint8_t to) {
  return __atomic_compare_exchange_n(reinterpret_cast<uint8_t*>(at), &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED);
}

bool write_block(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  uint64_t block = pc & ~15ull;
  uint64_t at = pc < block + 8 ? pc : block + 8;
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

bool write_stepwise(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  if (!g_can_serialise || memcmp(reinterpret_cast<const void*>(pc), from, count) != 0) return false;
  if (!swap_1(pc, from[0], kInt3)) return false;
  CodePatch::serialise_cores();
  for (size_t i = 1; i < count; ++i) __atomic_store_n(reinterpret_cast<uint8_t*>(pc + i), to[i], __ATOMIC_SEQ_CST);
  CodePatch::serialise_cores();
  __atomic_store_n(reinterpret_cast<uint8_t*>(pc), to[0], __ATOMIC_SEQ_CST);
  return true;
}

}  // namespace

void CodePatch::init() { g_can_serialise = raw_syscall(SYS_membarrier, kRegisterPrivateSyncCore) == 0; }

bool CodePatch::serialise_cores() { return g_can_serialise && raw_syscall(SYS_membarrier, kPrivateSyncCore) == 0; }

bool CodePatch::write(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count) {
  bool one_block = (pc & ~15ull) == ((pc + count - 1) & ~15ull);
  return one_block ? write_block(pc, from, to, count) : write_stepwise(pc, from, to, count);
}

}  // namespace classaccess
