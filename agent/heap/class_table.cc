#include "agent/heap/class_table.h"

#include <string_view>

#include "agent/base/counters.h"
#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/heap/metadata.h"
#include "agent/heap/object_header.h"

namespace classaccess {
namespace {

constexpr uint32_t kMaxClasses = 1u << 18;
constexpr size_t kNameBytes = 64u << 20;
constexpr size_t kMaxSupers = 64;
constexpr int kMaxLoaderDepth = 4;  // loaders whose classes were loaded by loaders ...
constexpr int32_t kMaxInstanceBytes = 4 << 20;

bool plausible_layout_helper(int32_t helper) {
  if (helper > 0) return helper >= 8 && helper < kMaxInstanceBytes;
  uint32_t bits = static_cast<uint32_t>(helper);
  uint32_t header = array_base(helper), type = (bits >> 8) & 0xff, log2 = bits & 0xff;
  // Bits 31 and 30: type array 11, object array 10. BasicType: T_BOOLEAN 4 to T_ARRAY 13.
  return helper < 0 && (bits & 0x3f000000) == 0 && header >= 12 && header <= 32 && type >= 4 && type <= 13 && log2 <= 3;
}

}  // namespace

bool ClassTable::create(const ClassPatterns* patterns, const VmLayout* layout) {
  patterns_ = patterns;
  layout_ = layout;
  for (size_t i = 0; i < patterns->count(); ++i) wants_supers_ |= patterns->at(i).subclasses;
  slots_ = reserve_array<Slot>(kSlots);
  return slots_ != nullptr && rows_.create(kMaxClasses) && names_.create(kNameBytes);
}

ClassInfo* ClassTable::find(uint64_t klass) {
  uint64_t symbol, loader_data;
  if (!plausible_pointer(klass)) return nullptr;
  // The slot is looked at first: most wrong candidates have none, and a read that faults is dear.
  if (slots_[hash_pointer(klass) % kSlots].klass.load(std::memory_order_acquire) == 0) return nullptr;
  if (!safe_load(klass + layout_->klass_name, &symbol)) return nullptr;
  if (!safe_load(klass + layout_->klass_class_loader_data, &loader_data)) return nullptr;
  return search(klass, symbol, loader_data);
}

ClassInfo* ClassTable::find_or_add(uint64_t klass) {
  if (ClassInfo* known = find(klass)) return known;
  return find_or_add_at(klass, 0);
}

ClassInfo* ClassTable::find_or_add_of_mirror(uint64_t klass) {
  if (ClassInfo* known = find(klass)) return known;
  uint64_t handle;
  if (!plausible_pointer(klass) || !safe_load(klass + layout_->klass_java_mirror, &handle)) return nullptr;
  return handle != 0 ? find_or_add_at(klass, 0) : add_with_supers(klass, 0);
}

// An existing row, nullptr if there is none or it is being made.
ClassInfo* ClassTable::search(uint64_t klass, uint64_t name_symbol, uint64_t loader_data) {
  uint32_t start = hash_pointer(klass);
  for (uint32_t i = 0; i < kSlots; ++i) {
    const Slot& slot = slots_[(start + i) % kSlots];
    uint64_t key = slot.klass.load(std::memory_order_acquire);
    if (key == 0) return nullptr;
    if (key != klass) continue;
    uint32_t id = slot.id.load(std::memory_order_acquire);
    if (id == 0 || id == kDead) continue;
    ClassInfo& row = rows_.row(id);
    if (still_is(klass, name_symbol, loader_data, &row)) return &row;
  }
  return nullptr;
}

ClassInfo* ClassTable::find_or_add_at(uint64_t klass, int loader_depth) {
  Identity identity;
  if (!read_identity(klass, &identity) || !mirror_agrees(klass)) return nullptr;
  return add_with_supers(klass, loader_depth);
}

// Makes the row of `klass` and first those of its super classes, from the top down.
ClassInfo* ClassTable::add_with_supers(uint64_t klass, int loader_depth) {
  Identity identity;
  if (!read_identity(klass, &identity)) return nullptr;
  uint64_t chain[kMaxSupers];
  size_t count = 0;
  for (uint64_t k = klass; count < kMaxSupers;) {
    chain[count++] = k;
    uint64_t super;
    if (!safe_load(k + layout_->klass_super, &super) || super == 0 || find(super) != nullptr) break;
    if (!read_identity(super, &identity)) break;
    k = super;
  }
  ClassInfo* row = nullptr;
  while (count > 0) row = add_one(chain[--count], loader_depth);
  return row;
}

ClassInfo* ClassTable::add_one(uint64_t klass, int loader_depth) {
  Identity identity;
  if (!read_identity(klass, &identity)) return nullptr;
  uint64_t super = 0;
  const ClassInfo* super_row = nullptr;
  if (safe_load(klass + layout_->klass_super, &super) && super != 0) super_row = find(super);
  uint32_t loader_id = loader_class(identity.loader_data, loader_depth);
  return claim(klass, identity, super_row != nullptr ? super_row->id : 0, loader_id);
}

ClassInfo* ClassTable::claim(uint64_t klass, const Identity& identity, uint32_t super_id, uint32_t loader_id) {
  uint32_t start = hash_pointer(klass);
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[(start + i) % kSlots];
    uint64_t key = slot.klass.load(std::memory_order_acquire);
    if (key == 0 && slot.klass.compare_exchange_strong(key, klass, std::memory_order_acq_rel)) {
      uint32_t id = rows_.claim();
      if (id == 0) {
        slot.id.store(kDead, std::memory_order_release);
        count(g_counters.table_full);
        return nullptr;
      }
      ClassInfo& row = rows_.row(id);
      row.id = id;
      row.super_id = super_id;
      row.loader_class_id = loader_id;
      fill(&row, klass, identity);
      row.ready.store(true, std::memory_order_release);
      slot.id.store(id, std::memory_order_release);
      return &row;
    }
    if (key != klass) continue;
    // Another thread's, or (its handler interrupted itself here) this thread's.
    ClassInfo* row = wait_for(slot);
    if (row == nullptr) return nullptr;
    if (still_is(klass, identity.name_symbol, identity.loader_data, row)) return row;
  }
  count(g_counters.table_full);
  return nullptr;
}

// Whether the class at `klass` is the row's. Another may have been loaded since where Klass,
// name and ClassLoaderData of an unloaded one were, all three.
bool ClassTable::still_is(uint64_t klass, uint64_t name_symbol, uint64_t loader_data, ClassInfo* row) const {
  int32_t layout_helper;
  if (row->name_symbol != name_symbol || row->loader_data != loader_data ||
      row->retired.load(std::memory_order_acquire) ||
      !safe_load(klass + layout_->klass_layout_helper, &layout_helper) || layout_helper != row->layout_helper) {
    return false;
  }
  // Unloading takes a collection; what was this class since the last one still is.
  uint32_t epoch = g_gc_id.load(std::memory_order_acquire);
  if (row->checked_epoch.load(std::memory_order_relaxed) == epoch) return true;
  bool same = same_text(name_symbol, *row);
  if (same && !row->is_array && layout_->klass_init_state != 0 &&
      row->fields.load(std::memory_order_acquire) != nullptr) {
    // Fields are known of linked classes only: one that is not is a new class of that name.
    uint8_t state;
    same = safe_load(klass + layout_->klass_init_state, &state) && state >= layout_->klass_state_linked;
  }
  if (same) {
    row->checked_epoch.store(epoch, std::memory_order_relaxed);
  } else {
    retire(row);
  }
  return same;
}

bool ClassTable::same_text(uint64_t name_symbol, const ClassInfo& row) const {
  uint16_t length;
  if (!safe_load(name_symbol + layout_->symbol_length, &length) || length != row.name_length) {
    return row.name_length == 0;  // its name found no room: not known
  }
  uint64_t at = name_symbol + layout_->symbol_body;
  for (uint32_t i = 0; i < length; ++i) {
    char c;
    if (!safe_load(at + i, &c) || c != row.name[i]) return false;
  }
  return true;
}

ClassInfo* ClassTable::wait_for(const Slot& slot) {
  for (int round = 0; round < kWaitRounds; ++round) {
    uint32_t id = slot.id.load(std::memory_order_acquire);
    if (id == kDead) return nullptr;
    if (id != 0) return &rows_.row(id);
    pause_briefly(round);
  }
  return nullptr;
}

void ClassTable::fill(ClassInfo* row, uint64_t klass, const Identity& identity) {
  row->klass = klass;
  row->name_symbol = identity.name_symbol;
  row->loader_data = identity.loader_data;
  row->checked_epoch.store(g_gc_id.load(std::memory_order_acquire), std::memory_order_relaxed);
  row->layout_helper = identity.layout_helper;
  row->is_array = identity.layout_helper < 0;
  row->instance_size = row->is_array ? 0 : static_cast<uint32_t>(identity.layout_helper) & ~7u;
  auto* name = static_cast<char*>(names_.take(identity.name_length + 1u));
  if (name != nullptr && safe_copy(name, identity.name_symbol + layout_->symbol_body, identity.name_length)) {
    row->name = name;
    row->name_length = identity.name_length;
  } else {
    row->name = "";
    count(g_counters.table_full);
  }
  std::string_view text(row->name, row->name_length);
  row->is_mirror = text == "java/lang/Class";
  row->is_stack_chunk = text == "jdk/internal/vm/StackChunk";
  row->selected = is_selected(klass, *row);
}

bool ClassTable::read_identity(uint64_t klass, Identity* identity) const {
  // Words that may be a Klass are asked about, and most are none.
  if (!plausible_pointer(klass) || !is_readable(klass + layout_->klass_layout_helper)) return false;
  if (!safe_load(klass + layout_->klass_layout_helper, &identity->layout_helper) ||
      !plausible_layout_helper(identity->layout_helper) ||
      !safe_load(klass + layout_->klass_name, &identity->name_symbol) ||
      !safe_load(klass + layout_->klass_class_loader_data, &identity->loader_data) ||
      !plausible_pointer(identity->loader_data)) {
    return false;
  }
  uint64_t readable;
  if (!safe_load(identity->loader_data + layout_->cld_class_loader, &readable)) return false;
  std::string_view name = symbol_in_place(*layout_, identity->name_symbol);
  if (name.empty() || (name[0] == '[') != (identity->layout_helper < 0)) return false;
  identity->name_length = static_cast<uint16_t>(name.size());
  return true;
}

// A Klass and its java.lang.Class mirror point at each other; nothing else in memory does. ZGC's
// handles hold coloured pointers, not addresses: there the check is left out.
bool ClassTable::mirror_agrees(uint64_t klass) const {
  if (layout_->mirror_klass == 0 || layout_->collector == Collector::kZ) return true;
  uint64_t handle, mirror, back;
  return safe_load(klass + layout_->klass_java_mirror, &handle) && plausible_pointer(handle) &&
         safe_load(handle, &mirror) && mirror >= layout_->heap_low && mirror < layout_->heap_high &&
         safe_load(twin_address(*layout_, mirror) + static_cast<uint64_t>(layout_->mirror_klass), &back) &&
         back == klass;
}

bool ClassTable::is_selected(uint64_t klass, const ClassInfo& row) const {
  std::string_view supers[2 * kMaxSupers];
  size_t count = 0;
  auto add = [&](uint64_t super) {
    uint64_t symbol;
    if (!plausible_pointer(super) || !safe_load(super + layout_->klass_name, &symbol)) return false;
    std::string_view name = symbol_in_place(*layout_, symbol);
    if (name.empty()) return false;
    supers[count++] = name;
    return true;
  };
  if (wants_supers_) {
    uint64_t super = klass;
    while (count < kMaxSupers && safe_load(super + layout_->klass_super, &super) && super != 0 && add(super)) {
    }
    uint64_t array;
    int32_t length;
    if (safe_load(klass + layout_->klass_secondary_supers, &array) && plausible_pointer(array) &&
        safe_load(array + layout_->array_length, &length)) {
      for (int32_t i = 0; i < length && static_cast<size_t>(i) < kMaxSupers; ++i) {
        uint64_t secondary;
        if (!safe_load(array + layout_->array_data + 8 * static_cast<uint64_t>(i), &secondary)) break;
        add(secondary);
      }
    }
  }
  return patterns_->matches({row.name, row.name_length}, supers, count);
}

// The id of the loader's class, 0 for the boot loader or if it cannot be told.
uint32_t ClassTable::loader_class(uint64_t loader_data, int loader_depth) {
  uint64_t handle, loader;
  if (loader_depth >= kMaxLoaderDepth || layout_->collector == Collector::kZ) return 0;
  if (!safe_load(loader_data + layout_->cld_class_loader, &handle) || !plausible_pointer(handle)) return 0;
  if (!safe_load(handle, &loader) || loader < layout_->heap_low || loader >= layout_->heap_high) return 0;
  uint64_t klass = klass_of(*layout_, loader);
  ClassInfo* row = find(klass);
  if (row == nullptr) row = find_or_add_at(klass, loader_depth + 1);
  return row != nullptr ? row->id : 0;
}

}  // namespace classaccess
