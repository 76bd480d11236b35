#include "agent/fault/probed_access.h"

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/heap/claims.h"
#endif
#include "agent/heap/object_header.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/twin_view.h"

namespace classaccess {

bool ProbedAccess::drain(ThreadState* thread, bool all) {
  ProbeBuffer& buffer = thread->probes;
  buffer.asks_left = kAsksOfDrain;
  const uint64_t end = end_of(buffer);
  uint64_t at = buffer.drained.load(std::memory_order_relaxed);
  if (at >= end) return true;
  find_owner(thread);
  if (buffer.noted > at) {
    times_unmarked_.fetch_add(1, std::memory_order_release);
    forget_noted(buffer);
  }
  const uint64_t t_ns = monotonic_ns();
  const bool may_be_again = whole_heap_ && !buffer.muted;
  while (at < end) {
    const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
    // The access follows its record: only a later record proves that it was made.
    uint64_t next = at + record_bytes_of(record.head);
    if (!all && next >= end) break;
    // Mostly the object's header lies there too.
    if (next < end) __builtin_prefetch(g_twin.at(reinterpret_cast<const ProbeRecord*>(next)->address));
    if (const uint64_t behind = may_be_again ? again(thread, at, end) : 0; behind != 0) {
      next = behind;
    } else if (record.head == mark_) {
      tell_context(thread, static_cast<uint32_t>(record.address));
    } else if (!take(thread, at, t_ns)) {
      return false;
    }
    at = next;
    buffer.drained.store(at, std::memory_order_relaxed);  // also behind a mark that no access follows
  }
  return true;
}

// Whether the access is one more of those counted in the slot.
inline bool ProbedAccess::hit(const CountSlot& slot, const Item& item) const {
  // A collection may have unloaded the class and put another one there.
  return slot.key == item.key && slot.bytecode_pointer == item.bytecode_pointer &&
         slot.klass_word == item.klass_word && slot.epoch == g_gc_id.load(std::memory_order_relaxed) &&
         fits(slot, item.object, item.address);
}

bool ProbedAccess::take(ThreadState* thread, uint64_t at, uint64_t t_ns) {
  const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
  const Probe& probe = g_probes.row(probe_id_of(record.head));
  const ProbeOperand& operand = probe.operand;
  Item item;
  item.at = at;
  item.next = at + record_bytes_of(record.head);
  item.displacement = operand.displacement;
  item.address = record.address;
  item.size = operand.size;
  item.t_ns = t_ns;
  item.key = probe_id_of(record.head);
  const uint64_t* more = record.more;
  item.inside = item.address - static_cast<uint64_t>(int64_t{operand.displacement});
  if (!operand.has_index) {
    item.base = item.inside;
  } else if (operand.has_base) {
    item.base = *more++;
    item.index = (item.inside - item.base) / operand.scale;
  } else {
    item.index = item.inside / operand.scale;
  }
  const uint64_t mask = operand.lane_bytes != 0 ? *more++ : 0;
  if (probe.kind == ProbeKind::kInterpreted) {
    item.bytecode_pointer = more[0];
    item.method = more[1];
  }
  if (operand.lane_bytes == 0) return take_item(thread, probe, item);
  // A run of lanes at a time: the handler may be on a small stack.
  const uint32_t lane = operand.lane_bytes, lanes = operand.size / lane;
  const UnknownObject unknown = t_unknown;
  bool left = false;
  for (uint32_t first = 0; first < lanes; ++first) {
    uint32_t end = first;
    while (end < lanes && (mask >> end & 1) != 0) ++end;
    if (end == first) continue;
    item.address = record.address + first * lane;
    item.size = (end - first) * lane;
    item.key = probe_id_of(record.head) | static_cast<uint64_t>(item.size) << 32;
    left = !take_item(thread, probe, item);
    if (left) break;
    first = end;
    // What is taken in part cannot be left any more.
    if (t_unknown == UnknownObject::kLeave) t_unknown = UnknownObject::kTake;
  }
  t_unknown = unknown;
  return !left;
}

bool ProbedAccess::take_item(ThreadState* thread, const Probe& probe, Item& item) {
  // Not the heap: the plain copy was run. Or a page that `heap=` leaves open.
  if (!g_armed.in_range(item.address) || (!whole_heap_ && !g_armed.armed(item.address))) return true;
  const VmLayout& layout = *path_->layout;
  auto starts_object = [&](uint64_t candidate) {
    return (candidate & 7) == 0 && candidate >= layout.heap_low && candidate <= item.address &&
           starts_->is_set(candidate);
  };
  // C2 decodes a compressed oop in the operand: heap base + oop * 8 + offset.
  item.object = item.base;
  bool named = starts_object(item.object);
  if (!named && item.inside != item.base) named = starts_object(item.object = item.inside);
  ++thread->counters.probed;
  item.is_store = probe.operand.op == Op::kStore;
  item.named = !named ? SlotObject::kSearched : item.object == item.inside ? SlotObject::kAddress : SlotObject::kBase;
  if (named) {
    return counted(thread, item, item.object) || take_slowly(thread, probe, item);
  }
  // A pointer into an object: the one it pointed into last, else the nearest below.
  ProbeBuffer::Inside& inside = inside_of(thread, item.base);
  const bool known = inside.base == item.base && starts_object(inside.object);
  if (known && counted(thread, item, inside.object)) return true;
  const uint64_t below = known ? 0 : starts_->at_or_below(item.address, layout.heap_low);
  if (below != 0 && counted(thread, item, below)) {
    inside = {item.base, below};
    return true;
  }
  return take_slowly(thread, probe, item);
}

ProbeBuffer::Inside& ProbedAccess::inside_of(ThreadState* thread, uint64_t base) {
  return thread->probes.insides[(base * 0x9e3779b97f4a7c15ull >> 40) % ProbeBuffer::kInsides];
}

// Whether it is one more of a slot, if the object is this one.
bool ProbedAccess::counted(ThreadState* thread, Item& item, uint64_t object) {
  item.object = object;
  // Nor a store to the header: it may make another object.
  item.countable = klass_word(object, &item.klass_word) && !(item.is_store && item.address - object < header_bytes_);
  return item.countable && count_again(thread, item);
}

// True if a slot has one like it: then it is dealt with.
bool ProbedAccess::count_again(ThreadState* thread, const Item& item) {
  CountSlots& counts = thread->probes.counts;
  CountSlot* slot = counts.set_of(item.key, item.bytecode_pointer, item.klass_word);
  for (uint32_t way = 0; !hit(*slot, item); ++slot) {
    if (++way == CountSlots::kWays) return false;
  }
  if (slot->named != SlotObject::kSearched) counts.note_last(slot);
  if (thread->probes.muted) return true;
#ifdef CLASSACCESS_VERIFY
  if (slot->selected) g_claims.claim(item.address, item.object, counts.first_of(slot).class_id);
#endif
  if (!slot->selected) {
    ++thread->counters.filtered;
    return true;
  }
  if (!g_single_rows.load(std::memory_order_relaxed)) {
    counts.add_one(slot);
    return true;
  }
  AccessRecord one = counts.first_of(slot);
  if (slot->kind == SlotKind::kElements) one.extent = elements_end(*slot, item.object);
  one.t_ns = item.t_ns;
  one.address = item.address;
  one.object = item.object;
  one.virtual_id = thread->probes.virtual_id;
  one.gc_id = g_gc_id.load(std::memory_order_relaxed);
  push_record(thread, one);
  return true;
}

bool ProbedAccess::take_slowly(ThreadState* thread, const Probe& probe, Item& item) {
  const bool named = item.named != SlotObject::kSearched;
  const Instruction& in = *probe.instruction;
  constexpr int kRbp = 5, kR13 = 13;
  // As the frame was: the interpreter's has the Method* at rbp-24.
  uint64_t frame[4] = {item.method, 0, 0, 0};
  CpuState cpu;
  if (probe.kind == ProbeKind::kInterpreted) {
    cpu.gpr[kRbp] = reinterpret_cast<uint64_t>(&frame[3]);
    cpu.gpr[kR13] = item.bytecode_pointer;
  }
  CpuState registers;
  registers.rip = cpu.rip = probe.pc;
  if (in.base < 16) registers.gpr[in.base] = item.base;
  if (in.index < 16) registers.gpr[in.index] = item.index;
  AccessRecord record;
  AccessPath::Probed probed;
  probed.row = static_cast<CachedInstruction*>(probe.owner);
  probed.site_id = probe.site_id;
  probed.registers = &registers;
  probed.frame = &cpu;
  probed.address = item.address;
  probed.size = item.size;
  probed.t_ns = item.t_ns;
  if (!path_->resolve_probed(thread, probed, &record)) {
    if (probed.left) {
      --thread->counters.probed;
      return false;
    }
    const Resolution& found = probed.resolution;
    const bool not_selected = found.kind == Resolution::kObject && !found.class_info->selected;
    if (not_selected && !named) know_inside(thread, item, found.object);
    if (not_selected && item.countable && found.object == item.object) install(thread, item, record, found);
    return true;
  }
  const bool plain = record.kind == RecordKind::kAccess && record.class_id != 0;
  if (plain && !named) {
    know_inside(thread, item, record.object);
    if (item.countable && count_again(thread, item)) return true;
  }
  if (plain && item.countable && record.object == item.object) {
    CountSlot* slot = install(thread, item, record, probed.resolution);
    if (!g_single_rows.load(std::memory_order_relaxed)) {
      thread->probes.counts.add_one(slot);
      return true;
    }
  }
  if (!plain && probe.kind != ProbeKind::kLibrary && !probe.operand.has_index && probe.operand.lane_bytes == 0) {
    learn_new_object(thread, item, record, probed.resolution.class_info);
  }
  push_record(thread, record);
  return true;
}

// The operand is a pointer into `object`, which is known now.
void ProbedAccess::know_inside(ThreadState* thread, Item& item, uint64_t object) {
  item.object = object;
  item.countable = klass_word(object, &item.klass_word);
  inside_of(thread, item.base) = {item.base, object};
}

CountSlot* ProbedAccess::install(ThreadState* thread, const Item& item, const AccessRecord& record,
                                 const Resolution& found) {
  CountSlots& counts = thread->probes.counts;
  const uint32_t epoch = g_gc_id.load(std::memory_order_relaxed);
  CountSlot* slot = counts.victim(counts.set_of(item.key, item.bytecode_pointer, item.klass_word), epoch);
  hand_on(thread, slot);
  const ClassInfo& info = *found.class_info;
  *slot = {};
  slot->key = item.key;
  slot->bytecode_pointer = item.bytecode_pointer;
  slot->klass_word = item.klass_word;
  slot->epoch = epoch;
  slot->size = item.size;
  slot->displacement = item.displacement;
  // The record's object is at the place that the head names only for an access of all its lanes.
  slot->named = item.key >> 32 != 0 ? SlotObject::kSearched : item.named;
  counts.first_of(slot) = record;
  slot->selected = info.selected;
  slot->object = info.is_mirror || found.mirror ? item.object : 0;
  slot->offset = static_cast<uint32_t>(item.address - item.object);
  if (!found.mirror && info.is_array) {
    uint32_t base = array_base(info.layout_helper);
    if (slot->offset >= base) {
      slot->kind = SlotKind::kElements;
      slot->offset = base;
      slot->log2_element = static_cast<uint8_t>(log2_element_size(info.layout_helper));
    }
  }
  if (slot->named != SlotObject::kSearched) counts.note_last(slot);
  return slot;
}

void ProbedAccess::hand_on(ThreadState* thread, CountSlot* slot) {
  if (slot->count == 0) return;
  AccessRecord record = thread->probes.counts.first_of(slot);
  record.value = slot->count;
  record.flags |= kFlagRepeat;
  record.t_ns = monotonic_ns();
  record.virtual_id = thread->probes.virtual_id;
  record.gc_id = g_gc_id.load(std::memory_order_relaxed);
  slot->count = 0;
  push_record(thread, record);
}

void ProbedAccess::flush(ThreadState* thread) {
  thread->probes.counts.flush([&](CountSlot* slot) { hand_on(thread, slot); });
}

}  // namespace classaccess
