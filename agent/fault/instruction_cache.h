// Decoded instructions by PC, with their displaced copies and, for code whose PC says
// everything, their site.
//
// A row is valid only while the bytes at its PC are the ones it was made from; code is
// patched and recycled by HotSpot, so every use compares them and a mismatch makes a
// new row. Rows are never freed.
// Context: signal handler; no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"
#include "agent/heap/code_lookup.h"
#include "agent/x86/instruction.h"

namespace classaccess {

struct CachedInstruction {
  std::atomic<bool> ready{false};
  uint32_t id = 0;
  uint64_t pc = 0;
  Instruction instruction;           // length 0: not decoded
  uint8_t fetched = 0;               // bytes compared on each use
  bool flags_dead = false;           // nobody reads the flags it sets (null-check probes)
  std::atomic<uint64_t> stub{0};     // displaced copy, 0: none yet
  std::atomic<bool> no_stub{false};  // cannot be displaced, or its copy faulted
  std::atomic<uint8_t> traps{0};     // until it is probed
  std::atomic<bool> no_probe{false};
  std::atomic<uint8_t> why_not{0};  // LayResult

  // Site of compiled and native code; the interpreter's depends on the frame. Written
  // under the seqlock `site_version` (odd while writing).
  std::atomic<uint32_t> site_version{0};
  uint32_t site_id = 0;
  uint64_t site_nmethod = 0;
  int32_t site_compile_id = 0;
};

class InstructionCache {
 public:
  // Also reserves the room for displaced copies; where memfd_create is refused there are
  // none. Not in a signal handler.
  bool create();

  // An attach has failed before anything was recorded: the copies are unmapped.
  void destroy();

  // The row for the code at `pc`. If the table is full, a scratch row in *fallback is
  // filled instead (nothing cached).
  CachedInstruction* lookup(uint64_t pc, CachedInstruction* fallback);

  // Address of the displaced copy, made if need be; 0 if there can be none.
  uint64_t displaced_copy(CachedInstruction* row);

  // If `pc` lies in a displaced copy, the row it was made for; else nullptr.
  CachedInstruction* row_of_copy(uint64_t pc);

 private:
  static constexpr uint32_t kSlots = 1u << 20;
  static constexpr uint32_t kRows = 1u << 19;
  static constexpr uint32_t kCopyBytes = 32;

  void fill(CachedInstruction* row, uint64_t pc);

  AppendTable<CachedInstruction> rows_;
  std::atomic<uint32_t>* slots_ = nullptr;
  // One memfd mapped twice: written here, executed there; no page is both.
  char* copies_write_ = nullptr;
  char* copies_run_ = nullptr;
  std::atomic<uint32_t> next_copy_{0};
  std::atomic<uint32_t>* copy_rows_ = nullptr;  // row id of each copy
};

}  // namespace classaccess
