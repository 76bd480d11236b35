// Method* -> method id, with the names and the line table copied at first sight by
// a thread in whose frame the method is active (so its metadata cannot go away).
// Context: signal handler and any thread; no lock, no allocation.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"
#include "agent/base/arena.h"
#include "agent/heap/class_table.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

struct MethodInfo {
  std::atomic<bool> ready{false};
  uint32_t id = 0;
  uint32_t holder_class_id = 0;
  uint64_t method = 0;  // Method*
  uint64_t const_method = 0;
  uint64_t holder = 0;  // InstanceKlass*
  uint64_t name_symbol = 0;
  const char* name = "";       // "total", "<init>"
  const char* signature = "";  // "(I)V"
  uint32_t code_size = 0;      // bytecodes
  // ConstMethod's compressed line number table, copied raw (share/code/compressedStream.hpp);
  // null if the class file has none. Decoded by line_of.
  const uint8_t* line_table = nullptr;
  uint32_t line_table_bytes = 0;
  bool unsigned5_excludes_zero = false;  // VmLayout's, for line_of
};

class MethodTable {
 public:
  bool create(ClassTable* classes, const VmLayout* layout);

  // nullptr if `method` is not a readable Method (each step by safe loads), if the table is
  // full or if another thread is making the row and does not finish in a bounded time.
  MethodInfo* find_or_add(uint64_t method);

  // Only an existing row of the same Method (same ConstMethod and name), or nullptr.
  MethodInfo* find(uint64_t method);

  const MethodInfo& row(uint32_t id) const { return rows_.row(id); }
  uint32_t end() const { return rows_.end(); }

  // Source line of `bci`, 0 if unknown. Any thread.
  static uint32_t line_of(const MethodInfo& method, int32_t bci);

 private:
  // As in ClassTable: claimed by the key, then given the row id.
  struct Slot {
    std::atomic<uint64_t> method{0};
    std::atomic<uint32_t> id{0};
  };
  // What makes a Method address this method and no later one. RedefineClasses swaps the
  // ConstMethod: that is another method here.
  struct Identity {
    uint64_t const_method = 0;
    uint64_t pool = 0;
    uint64_t name_symbol = 0, signature_symbol = 0;
    uint64_t holder = 0;
    uint16_t code_size = 0;
  };

  bool read_identity(uint64_t method, Identity* identity) const;
  bool holder_is(const Identity& identity, const MethodInfo& row) const;
  bool pool_symbol(uint64_t pool, uint64_t const_method, uint32_t index_offset, uint64_t* symbol) const;
  const char* copy_symbol(uint64_t symbol);
  void copy_line_table(MethodInfo* row);
  void fill(MethodInfo* row, uint64_t method, const Identity& identity);

  static constexpr uint32_t kSlots = 1u << 19;
  static constexpr uint32_t kDead = UINT32_MAX;
  AppendTable<MethodInfo> rows_;
  Slot* slots_ = nullptr;
  Arena names_;
  ClassTable* classes_ = nullptr;
  const VmLayout* layout_ = nullptr;
};

}  // namespace classaccess
