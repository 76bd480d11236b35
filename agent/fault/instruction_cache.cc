#include "agent/fault/instruction_cache.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/counters.h"
#include "agent/base/hash.h"
#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/x86/decode.h"
#include "agent/x86/displace.h"
#include "agent/x86/flag_liveness.h"

namespace classaccess {
namespace {

constexpr uint8_t kMaxInstruction = 15;

}  // namespace

bool InstructionCache::create() {
  static_assert(kMaxDisplaced <= kCopyBytes);
  slots_ = reserve_array<std::atomic<uint32_t>>(kSlots);
  copy_rows_ = reserve_array<std::atomic<uint32_t>>(kRows);
  if (slots_ == nullptr || copy_rows_ == nullptr || !rows_.create(kRows)) return false;
  constexpr size_t kBytes = static_cast<size_t>(kRows) * kCopyBytes;
  constexpr unsigned kCloexec = 1;  // MFD_CLOEXEC
  int fd = static_cast<int>(syscall(SYS_memfd_create, "classaccess-code", kCloexec));
  if (fd < 0) return true;  // no copies: what would be displaced is single-stepped
  bool ok = ftruncate(fd, kBytes) == 0;
  void* write = ok ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  void* run = ok ? mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) : MAP_FAILED;
  close(fd);
  if (write == MAP_FAILED || run == MAP_FAILED) return false;
  copies_write_ = static_cast<char*>(write);
  copies_run_ = static_cast<char*>(run);
  return true;
}

void InstructionCache::destroy() {
  constexpr size_t kBytes = static_cast<size_t>(kRows) * kCopyBytes;
  if (copies_run_ == nullptr) return;
  char* run = copies_run_;
  copies_run_ = nullptr;
  munmap(run, kBytes);
  munmap(copies_write_, kBytes);
}

void InstructionCache::fill(CachedInstruction* row, uint64_t pc) {
  uint8_t code[kMaxInstruction];
  auto available = static_cast<uint8_t>(safe_copy_prefix(code, pc, kMaxInstruction));
  row->pc = pc;
  if (decode(code, available, &row->instruction)) {
    row->fetched = row->instruction.length;
    if (row->instruction.writes_flags_only) {
      uint8_t next[48];
      size_t got = safe_copy_prefix(next, pc + row->fetched, sizeof(next));
      row->flags_dead = flags_are_dead_after(next, got);
    }
  } else {
    row->instruction = Instruction{};
    memcpy(row->instruction.bytes, code, available);
    row->fetched = available;
    count(g_counters.decode_failures);
  }
}

CachedInstruction* InstructionCache::lookup(uint64_t pc, CachedInstruction* fallback) {
  uint64_t hash = hash_address(pc);
  for (uint32_t probe = 0; probe < kSlots; ++probe) {
    std::atomic<uint32_t>& slot = slots_[(hash + probe) % kSlots];
    uint32_t id = slot.load(std::memory_order_acquire);
    if (id != 0) {
      CachedInstruction& row = rows_.row(id);
      if (row.pc != pc) continue;
      if (memcmp(reinterpret_cast<const void*>(pc), row.instruction.bytes, row.fetched) == 0) return &row;
    }
    uint32_t mine = rows_.claim();
    if (mine == 0) break;
    CachedInstruction& row = rows_.row(mine);
    row.id = mine;
    fill(&row, pc);
    row.ready.store(true, std::memory_order_release);
    if (slot.compare_exchange_strong(id, mine, std::memory_order_acq_rel)) return &row;
    --probe;  // another thread took the slot: look at what it put there
  }
  count(g_counters.table_full);
  fill(fallback, pc);
  fallback->no_stub.store(true, std::memory_order_relaxed);
  return fallback;
}

uint64_t InstructionCache::displaced_copy(CachedInstruction* row) {
  if (row->no_stub.load(std::memory_order_relaxed)) return 0;  // also one whose copy has faulted
  uint64_t stub = row->stub.load(std::memory_order_acquire);
  if (stub != 0) return stub;
  uint32_t index = copies_run_ != nullptr && can_displace(row->instruction)
                       ? next_copy_.fetch_add(1, std::memory_order_relaxed)
                       : kRows;
  if (index >= kRows) {
    row->no_stub.store(true, std::memory_order_relaxed);
    return 0;
  }
  auto* to = reinterpret_cast<uint8_t*>(copies_write_ + static_cast<size_t>(index) * kCopyBytes);
  if (write_displaced(row->instruction, row->pc + row->instruction.length, to) == 0) {
    row->no_stub.store(true, std::memory_order_relaxed);
    return 0;
  }
  copy_rows_[index].store(row->id, std::memory_order_release);
  uint64_t run = reinterpret_cast<uint64_t>(copies_run_ + static_cast<size_t>(index) * kCopyBytes);
  // Two threads may each make one: both are right, the first published is used.
  uint64_t expected = 0;
  return row->stub.compare_exchange_strong(expected, run, std::memory_order_acq_rel) ? run : expected;
}

CachedInstruction* InstructionCache::row_of_copy(uint64_t pc) {
  uint64_t offset = pc - reinterpret_cast<uint64_t>(copies_run_);
  if (copies_run_ == nullptr || offset >= static_cast<uint64_t>(kRows) * kCopyBytes) return nullptr;
  uint32_t id = copy_rows_[offset / kCopyBytes].load(std::memory_order_acquire);
  return id != 0 ? &rows_.row(id) : nullptr;
}

}  // namespace classaccess
