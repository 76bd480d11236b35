// Sites: the instruction addresses that trapped, with what stands in the `site`
// table. For the interpreter a site is (pc, method, bci), since a template's PC
// serves every method; for compiled code (pc, compile id).
// Context: signal handler (add), writer thread (read by id). No lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"
#include "agent/heap/code_lookup.h"
#include "classaccess/record.h"

namespace classaccess {

struct SiteInfo {
  std::atomic<bool> ready{false};
  uint32_t id = 0;
  SiteKind kind = SiteKind::kNative;
  uint8_t length = 0;    // of the instruction, 0 if not decoded
  uint8_t bytecode = 0;  // at `bci`, 0 if unknown
  uint8_t bytes[15] = {};
  uint64_t pc = 0;
  uint64_t caller_pc = 0;  // kNative called by libjvm: where it returns to (Shenandoah only)
  uint32_t method_id = 0;  // MethodTable, 0: none
  int32_t bci = -1;
  int32_t compile_id = 0;
  const char* stub_name = nullptr;  // kStub
  // At a bytecode that creates an object: seen to store more than zeros and headers. Code without debug information
  // of its own has that of what follows it, so it is the program's store all the same.
  std::atomic<bool> stores_data{false};
};

class SiteTable {
 public:
  bool create();

  // The id of this site, made if need be; 0 when the table is full.
  uint32_t find_or_add(uint64_t pc, const CodeSite& code, const uint8_t* bytes, uint8_t length, uint64_t caller_pc = 0);

  void note_stores_data(uint32_t id) { rows_.row(id).stores_data.store(true, std::memory_order_relaxed); }

  const SiteInfo& row(uint32_t id) const { return rows_.row(id); }
  uint32_t end() const { return rows_.end(); }

 private:
  static constexpr uint32_t kSlots = 1u << 21;
  AppendTable<SiteInfo> rows_;
  std::atomic<uint32_t>* slots_ = nullptr;
};

}  // namespace classaccess
