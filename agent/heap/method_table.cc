#include "agent/heap/method_table.h"

#include "agent/base/counters.h"
#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/heap/line_table.h"
#include "agent/heap/metadata.h"

namespace classaccess {
namespace {

constexpr uint32_t kMaxMethods = 1u << 18;
constexpr size_t kNameBytes = 256u << 20;
constexpr uint32_t kMaxLineTable = 64u << 10;

}  // namespace

bool MethodTable::create(ClassTable* classes, const VmLayout* layout) {
  classes_ = classes;
  layout_ = layout;
  slots_ = reserve_array<Slot>(kSlots);
  return slots_ != nullptr && rows_.create(kMaxMethods) && names_.create(kNameBytes);
}

MethodInfo* MethodTable::find(uint64_t method) {
  uint64_t const_method;
  if (!plausible_pointer(method)) return nullptr;
  uint32_t start = hash_pointer(method);
  for (uint32_t i = 0; i < kSlots; ++i) {
    const Slot& slot = slots_[(start + i) % kSlots];
    uint64_t key = slot.method.load(std::memory_order_acquire);
    if (key == 0) return nullptr;
    if (key != method) continue;
    uint32_t id = slot.id.load(std::memory_order_acquire);
    if (id == 0 || id == kDead) continue;
    MethodInfo& row = rows_.row(id);
    if (!safe_load(method + layout_->method_const_method, &const_method)) return nullptr;
    if (const_method != row.const_method) continue;
    // The ConstMethod's address may have been reused as well: its name must be the same.
    Identity identity;
    if (!read_identity(method, &identity)) return nullptr;
    if (identity.name_symbol == row.name_symbol && identity.holder == row.holder && holder_is(identity, row)) {
      return &row;
    }
  }
  return nullptr;
}

MethodInfo* MethodTable::find_or_add(uint64_t method) {
  if (MethodInfo* known = find(method)) return known;
  Identity identity;
  if (!read_identity(method, &identity)) return nullptr;
  ClassInfo* holder = classes_->find_or_add(identity.holder);
  if (holder == nullptr) return nullptr;

  uint32_t start = hash_pointer(method);
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[(start + i) % kSlots];
    uint64_t key = slot.method.load(std::memory_order_acquire);
    if (key == 0 && slot.method.compare_exchange_strong(key, method, std::memory_order_acq_rel)) {
      uint32_t id = rows_.claim();
      if (id == 0) {
        slot.id.store(kDead, std::memory_order_release);
        count(g_counters.table_full);
        return nullptr;
      }
      MethodInfo& row = rows_.row(id);
      row.id = id;
      row.holder_class_id = holder->id;
      fill(&row, method, identity);
      row.ready.store(true, std::memory_order_release);
      slot.id.store(id, std::memory_order_release);
      return &row;
    }
    if (key != method) continue;
    uint32_t id = 0;
    for (int round = 0; round < kWaitRounds && (id = slot.id.load(std::memory_order_acquire)) == 0; ++round) {
      pause_briefly(round);
    }
    if (id == 0 || id == kDead) return nullptr;
    MethodInfo& row = rows_.row(id);
    if (row.const_method == identity.const_method && row.name_symbol == identity.name_symbol &&
        row.holder == identity.holder && row.holder_class_id == holder->id) {
      return &row;
    }
  }
  count(g_counters.table_full);
  return nullptr;
}

// Of an unloaded class everything may have been reused, its Klass by a class with a row of its own.
bool MethodTable::holder_is(const Identity& identity, const MethodInfo& row) const {
  const ClassInfo* holder = classes_->find(identity.holder);
  return holder != nullptr && holder->id == row.holder_class_id;
}

bool MethodTable::read_identity(uint64_t method, Identity* identity) const {
  const VmLayout& l = *layout_;
  return plausible_pointer(method) && safe_load(method + l.method_const_method, &identity->const_method) &&
         plausible_pointer(identity->const_method) &&
         safe_load(identity->const_method + l.const_method_constants, &identity->pool) &&
         plausible_pointer(identity->pool) && safe_load(identity->pool + l.pool_holder, &identity->holder) &&
         plausible_pointer(identity->holder) &&
         safe_load(identity->const_method + l.const_method_code_size, &identity->code_size) &&
         pool_symbol(identity->pool, identity->const_method, l.const_method_name_index, &identity->name_symbol) &&
         pool_symbol(identity->pool, identity->const_method, l.const_method_signature_index,
                     &identity->signature_symbol);
}

// The Symbol whose index in the constant pool is the u2 at const_method + index_offset.
bool MethodTable::pool_symbol(uint64_t pool, uint64_t const_method, uint32_t index_offset, uint64_t* symbol) const {
  uint16_t index;
  int32_t length;
  return safe_load(const_method + index_offset, &index) && safe_load(pool + layout_->pool_length, &length) &&
         index > 0 && static_cast<int32_t>(index) < length &&
         safe_load(pool + layout_->pool_bytes + 8 * static_cast<uint64_t>(index), symbol) && plausible_pointer(*symbol);
}

const char* MethodTable::copy_symbol(uint64_t symbol) {
  uint16_t length;
  if (!safe_load(symbol + layout_->symbol_length, &length)) return "";
  auto* text = static_cast<char*>(names_.take(length + 1u));
  if (text != nullptr && safe_copy(text, symbol + layout_->symbol_body, length)) return text;
  count(g_counters.table_full);
  return "";
}

void MethodTable::fill(MethodInfo* row, uint64_t method, const Identity& identity) {
  row->method = method;
  row->const_method = identity.const_method;
  row->name_symbol = identity.name_symbol;
  row->holder = identity.holder;
  row->code_size = identity.code_size;
  row->name = copy_symbol(identity.name_symbol);
  row->signature = copy_symbol(identity.signature_symbol);
  row->unsigned5_excludes_zero = layout_->unsigned5_excludes_zero;
  uint16_t flags;
  if (safe_load(identity.const_method + layout_->const_method_flags, &flags) &&
      (flags & layout_->const_method_has_line_table) != 0) {
    copy_line_table(row);
  }
}

// The table follows the bytecodes. Its length is not stored: the pairs are read up to the end mark.
void MethodTable::copy_line_table(MethodInfo* row) {
  uint64_t from = row->const_method + layout_->const_method_bytes + row->code_size;
  SafeBytes bytes(from);
  LinePair at;
  LineStep step;
  do {
    step = next_line(
        row->unsigned5_excludes_zero, [&](uint8_t* byte) { return bytes.next(byte); }, &at);
  } while (step == LineStep::kPair && bytes.at() - from < kMaxLineTable);
  uint64_t length = bytes.at() - from;
  if (step != LineStep::kEnd || length > kMaxLineTable) return;
  auto* table = static_cast<uint8_t*>(names_.take(length));
  if (table == nullptr || !safe_copy(table, from, length)) {
    count(g_counters.table_full);
    return;
  }
  row->line_table = table;
  row->line_table_bytes = static_cast<uint32_t>(length);
}

// The pairs are sorted by class file order, not by bci: the best is the largest bci not above.
uint32_t MethodTable::line_of(const MethodInfo& method, int32_t bci) {
  if (method.line_table == nullptr || bci < 0) return 0;
  uint32_t used = 0;
  auto next = [&](uint8_t* byte) {
    if (used >= method.line_table_bytes) return false;
    *byte = method.line_table[used++];
    return true;
  };
  LinePair at;
  int32_t best_bci = -1, best_line = 0;
  while (next_line(method.unsigned5_excludes_zero, next, &at) == LineStep::kPair) {
    if (at.bci == bci) return static_cast<uint32_t>(at.line);
    if (at.bci < bci && at.bci >= best_bci) {
      best_bci = at.bci;
      best_line = at.line;
    }
  }
  return static_cast<uint32_t>(best_line);
}

}  // namespace classaccess
