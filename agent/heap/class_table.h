// Klass* -> class id. The one place where a class gets its number.
//
// find_or_add is called by the trap handler (first sight of a Klass) and by the
// JVMTI callbacks; the writer reads rows by id. The name is copied when the row
// is made, by a thread that holds the class alive, so nothing touches VM metadata
// later. A Klass address may be reused after unloading, and its name Symbol's and
// ClassLoaderData's with it: a hit counts only if those are the same and, once after
// each collection, the name's text too; a class that has just been prepared takes no row
// that was another's before a collection.
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
  uint32_t id = 0;  // process-wide, from 1
  uint32_t declaring_class_id = 0;
  uint32_t offset = 0;  // bytes from the object's (or mirror's) start
  uint8_t size = 0;     // bytes
  bool is_static = false;
  const char* name = "";
  const char* descriptor = "";  // "I", "Ljava/lang/String;"
};

// Fields of one class, sorted by offset; `instance` includes inherited ones.
struct FieldSet {
  const FieldInfo* const* instance = nullptr;
  uint32_t instance_count = 0;
  const FieldInfo* const* statics = nullptr;
  uint32_t static_count = 0;
};

struct ClassInfo {
  std::atomic<bool> ready{false};  // release-stored last
  uint32_t id = 0;
  uint32_t super_id = 0;         // 0: none, or not seen yet
  uint32_t loader_class_id = 0;  // class of the loader, 0: boot
  uint64_t klass = 0;
  uint64_t name_symbol = 0;
  uint64_t loader_data = 0;  // ClassLoaderData*
  int32_t layout_helper = 0;
  uint32_t instance_size = 0;  // bytes, 0 for arrays
  const char* name = "";       // as in the VM, modified UTF-8: com/acme/Order, [I, [Lcom/acme/Order;
  uint32_t name_length = 0;
  bool is_array = false;
  bool is_mirror = false;                        // java.lang.Class
  bool is_stack_chunk = false;                   // jdk.internal.vm.StackChunk
  bool selected = false;                         // matches classes=
  std::atomic<const FieldSet*> fields{nullptr};  // null until ClassPrepare
  std::atomic<uint32_t> checked_epoch{0};        // g_gc_id when it was last known to be this class
  std::atomic<bool> retired{false};              // unloaded: its Klass address is another's
  // JVMTI threads only: 1 + the number of collections when its ClassPrepare came, or it was found prepared.
  std::atomic<uint32_t> prepared_at{kNotPrepared};
  static constexpr uint32_t kNotPrepared = 0;  // a row is zeroed memory, no constructor has run
};

class ClassTable {
 public:
  // Patterns and layout outlive the table. Not in a signal handler.
  bool create(const ClassPatterns* patterns, const VmLayout* layout);

  // The row of `klass`, made if need be together with its super classes' rows; nullptr
  // if `klass` is not a Klass that can be read (checked by safe loads and plausibility:
  // layout helper, name Symbol, ClassLoaderData, and its mirror must point back at it),
  // if the table is full, or if another thread is making the row and does not finish in
  // a bounded time (also: the thread that was interrupted while making it).
  ClassInfo* find_or_add(uint64_t klass);

  // The same for the Klass that a java.lang.Class object names, which is proof enough: static fields
  // get their initial values before the Klass is given its mirror (java_lang_Class::create_mirror).
  ClassInfo* find_or_add_of_mirror(uint64_t klass);

  // Only an existing row; nullptr otherwise. The handler's fast path.
  ClassInfo* find(uint64_t klass);

  // The class of this row has been unloaded, found out by the caller.
  static void retire(ClassInfo* row) { row->retired.store(true, std::memory_order_release); }

  ClassInfo& row(uint32_t id) { return rows_.row(id); }
  const ClassInfo& row(uint32_t id) const { return rows_.row(id); }
  uint32_t end() const { return rows_.end(); }

 private:
  // A slot is claimed by writing its key, then gets its row id; kDead if the row
  // could not be made. A reused Klass address takes a second slot.
  struct Slot {
    std::atomic<uint64_t> klass{0};
    std::atomic<uint32_t> id{0};
  };
  // What makes a Klass address this class and no later one.
  struct Identity {
    uint64_t name_symbol = 0;
    uint64_t loader_data = 0;
    int32_t layout_helper = 0;
    uint16_t name_length = 0;
  };

  ClassInfo* find_or_add_at(uint64_t klass, int loader_depth);
  ClassInfo* add_with_supers(uint64_t klass, int loader_depth);
  ClassInfo* add_one(uint64_t klass, int loader_depth);
  ClassInfo* claim(uint64_t klass, const Identity& identity, uint32_t super_id, uint32_t loader_id);
  void fill(ClassInfo* row, uint64_t klass, const Identity& identity);
  ClassInfo* search(uint64_t klass, uint64_t name_symbol, uint64_t loader_data);
  ClassInfo* wait_for(const Slot& slot);
  bool still_is(uint64_t klass, uint64_t name_symbol, uint64_t loader_data, ClassInfo* row) const;
  bool same_text(uint64_t name_symbol, const ClassInfo& row) const;
  bool read_identity(uint64_t klass, Identity* identity) const;
  bool mirror_agrees(uint64_t klass) const;
  bool is_selected(uint64_t klass, const ClassInfo& row) const;
  uint32_t loader_class(uint64_t loader_data, int loader_depth);

  static constexpr uint32_t kSlots = 1u << 19;
  static constexpr uint32_t kDead = UINT32_MAX;
  AppendTable<ClassInfo> rows_;
  Slot* slots_ = nullptr;  // open addressing
  Arena names_;
  bool wants_supers_ = false;  // a pattern ends in '+'
  const ClassPatterns* patterns_ = nullptr;
  const VmLayout* layout_ = nullptr;
};

}  // namespace classaccess
