// Klass* -> class id. The one place where a class gets its number.
//
// find_or_add is called by the trap handler (first sight of a Klass) and by the
// JVMTI callbacks; the writer reads rows by id. The name is copied when the row
// is made, by a thread that holds the class alive, so nothing touches VM metadata
// later. A Klass address may be reused after unloading: a hit counts only if the
// Klass still has the same name Symbol and ClassLoaderData.
// Context: signal handler and any thread; no lock, no allocation.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"
#include "agent/base/arena.h"
#include "agent/heap/class_pattern.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

// One field as JVMTI reports it. Made in ClassPrepare (or VMInit), never freed.
struct FieldInfo {
  uint32_t id = 0;                  // process-wide, from 1
  uint32_t declaring_class_id = 0;
  uint32_t offset = 0;              // bytes from the object's (or mirror's) start
  uint8_t size = 0;                 // bytes
  bool is_static = false;
  const char* name = "";
  const char* descriptor = "";      // "I", "Ljava/lang/String;"
};

// Fields of one class, sorted by offset; `instance` includes inherited ones.
struct FieldSet {
  const FieldInfo* const* instance = nullptr;
  uint32_t instance_count = 0;
  const FieldInfo* const* statics = nullptr;
  uint32_t static_count = 0;
};

struct ClassInfo {
  std::atomic<bool> ready{false};   // release-stored last
  uint32_t id = 0;
  uint32_t super_id = 0;            // 0: none, or not seen yet
  uint32_t loader_class_id = 0;     // class of the loader, 0: boot
  uint64_t klass = 0;
  uint64_t name_symbol = 0;
  uint64_t loader_data = 0;         // ClassLoaderData*
  int32_t layout_helper = 0;
  uint32_t instance_size = 0;       // bytes, 0 for arrays
  const char* name = "";            // as in the VM, modified UTF-8: com/acme/Order, [I, [Lcom/acme/Order;
  uint32_t name_length = 0;
  bool is_array = false;
  bool is_mirror = false;           // java.lang.Class
  bool is_stack_chunk = false;      // jdk.internal.vm.StackChunk
  bool selected = false;            // matches classes=
  std::atomic<const FieldSet*> fields{nullptr};  // null until ClassPrepare
};

class ClassTable {
 public:
  // Patterns and layout outlive the table. Not in a signal handler.
  bool create(const ClassPatterns* patterns, const VmLayout* layout);

  // The row of `klass`, made if need be; nullptr if `klass` is not a Klass that
  // can be read (checked by safe loads and plausibility: layout helper, name
  // Symbol, ClassLoaderData), or the table is full.
  ClassInfo* find_or_add(uint64_t klass);

  // Only an existing row; nullptr otherwise. The handler's fast path.
  ClassInfo* find(uint64_t klass);

  ClassInfo& row(uint32_t id) { return rows_.row(id); }
  const ClassInfo& row(uint32_t id) const { return rows_.row(id); }
  uint32_t end() const { return rows_.end(); }

 private:
  static constexpr uint32_t kSlots = 1u << 19;
  AppendTable<ClassInfo> rows_;
  std::atomic<uint32_t>* slots_ = nullptr;  // open addressing: row ids, 0 = free
  Arena names_;
  const ClassPatterns* patterns_ = nullptr;
  const VmLayout* layout_ = nullptr;
};

}  // namespace classaccess
