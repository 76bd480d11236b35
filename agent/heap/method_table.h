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
  uint64_t method = 0;              // Method*
  uint64_t const_method = 0;
  uint64_t name_symbol = 0;
  const char* name = "";            // "total", "<init>"
  const char* signature = "";       // "(I)V"
  uint32_t code_size = 0;           // bytecodes
  // ConstMethod's compressed line number table, copied raw (share/code/compressedStream.hpp);
  // null if the class file has none. Decoded by line_of.
  const uint8_t* line_table = nullptr;
  uint32_t line_table_bytes = 0;
};

class MethodTable {
 public:
  bool create(ClassTable* classes, const VmLayout* layout);

  // nullptr if `method` is not a readable Method (each step by safe loads).
  MethodInfo* find_or_add(uint64_t method);

  const MethodInfo& row(uint32_t id) const { return rows_.row(id); }
  uint32_t end() const { return rows_.end(); }

  // Source line of `bci`, 0 if unknown. Any thread.
  static uint32_t line_of(const MethodInfo& method, int32_t bci);

 private:
  static constexpr uint32_t kSlots = 1u << 19;
  AppendTable<MethodInfo> rows_;
  std::atomic<uint32_t>* slots_ = nullptr;
  Arena names_;
  ClassTable* classes_ = nullptr;
  const VmLayout* layout_ = nullptr;
};

}  // namespace classaccess
