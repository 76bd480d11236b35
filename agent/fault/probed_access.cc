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

namespace {

template <typename T>
T load_twin(const VmLayout& layout, uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const T*>(twin_address(layout, address)), __ATOMIC_RELAXED);
}

uint64_t klass_word_of(const VmLayout& layout, uint64_t object) {
  if (layout.compact_headers) return load_twin<uint64_t>(layout, object) >> layout.mark_klass_shift;
  if (layout.compressed_class_pointers) return load_twin<uint32_t>(layout, object + layout.klass_offset);
  return load_twin<uint64_t>(layout, object + layout.klass_offset);
}

}  // namespace

// A record, with what the CPU's registers were as far as the resolver asks.
struct ProbedAccess::Item {
  uint64_t address = 0;
  uint64_t object = 0;  // that the operand names, if it names one
  uint64_t inside = 0;  // the operand without its displacement
  uint64_t bytecode_pointer = 0, method = 0;
  uint64_t base = 0, index = 0;
  uint64_t klass_word = 0;
  uint64_t t_ns = 0;
  uint64_t key = 0;
  uint32_t size = 0;
};

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
  while (at < end) {
    const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
    const Probe& probe = g_probes.row(static_cast<uint32_t>(record.probe_id));
    // The access follows its record: only a later record proves that it was made.
    const uint64_t next = at + 8u * probe.shape.record_words;
    if (!all && next >= end) break;
    if (static_cast<uint32_t>(record.probe_id) == mark_) {
      tell_context(thread, static_cast<uint32_t>(record.address));
      at = next;
      buffer.drained.store(at, std::memory_order_relaxed);  // also where no probed access ever follows
      continue;
    }
    if (next < end) {
      // Mostly the object's header lies there too.
      const auto& ahead = *reinterpret_cast<const ProbeRecord*>(next);
      __builtin_prefetch(&g_probes.row(static_cast<uint32_t>(ahead.probe_id)));
      __builtin_prefetch(g_twin.at(ahead.address));
    }
    if (!take(thread, probe, record, t_ns)) return false;
    at = next;
    buffer.drained.store(at, std::memory_order_relaxed);
  }
  return true;
}

// Whether the access is one more of those counted in the slot.
inline bool ProbedAccess::hit(const CountSlot& slot, const Item& item) const {
  // A collection may have unloaded the class and put another one there.
  if (slot.epoch != g_gc_id.load(std::memory_order_relaxed)) return false;
  if (slot.key != item.key || slot.bytecode_pointer != item.bytecode_pointer || slot.klass_word != item.klass_word) {
    return false;
  }
  uint64_t offset = item.address - item.object;
  if (!slot.elements) {
    return offset == slot.offset && (slot.object == 0 || slot.object == item.object);
  }
  uint64_t length = load_twin<uint32_t>(*path_->layout, item.object + path_->layout->array_length_offset);
  return offset >= slot.offset && offset + slot.size <= slot.offset + (length << slot.log2_element);
}

bool ProbedAccess::take(ThreadState* thread, const Probe& probe, const ProbeRecord& record, uint64_t t_ns) {
  const ProbeOperand& operand = probe.operand;
  Item item;
  item.address = record.address;
  item.size = operand.size;
  item.t_ns = t_ns;
  item.key = record.probe_id;
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
    item.key = record.probe_id | static_cast<uint64_t>(item.size) << 32;
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
  const bool store = probe.operand.op == Op::kStore;
  CountSlot* slot = nullptr;
  // Counted in a line that fits: that the address lies in `object` is asked there.
  auto counted = [&](uint64_t object) {
    item.object = object;
    item.klass_word = klass_word_of(layout, object);
    // Forwarded (Shenandoah): the Klass of compact headers is at the copy.
    const bool forwarded = layout.compact_headers && (load_twin<uint64_t>(layout, object) & 3) == 3;
    const bool header_store = store && item.address - object < header_bytes_;
    slot = forwarded || header_store ? nullptr : slot_of(thread, item);
    return slot != nullptr && count_again(thread, slot, item);
  };
  if (named) return counted(item.object) || take_slowly(thread, probe, item, slot, true);
  // A pointer into an object: the one it pointed into last, else the nearest below.
  ProbeBuffer::Inside& inside = inside_of(thread, item.base);
  const bool again = inside.base == item.base && starts_object(inside.object);
  if (again && counted(inside.object)) return true;
  const uint64_t below = again ? 0 : starts_->at_or_below(item.address, layout.heap_low);
  if (below != 0 && counted(below)) {
    inside = {item.base, below};
    return true;
  }
  return take_slowly(thread, probe, item, nullptr, false);
}

ProbeBuffer::Inside& ProbedAccess::inside_of(ThreadState* thread, uint64_t base) {
  return thread->probes.insides[(base * 0x9e3779b97f4a7c15ull >> 40) % ProbeBuffer::kInsides];
}

inline AccessRecord& first_of(ThreadState* thread, const CountSlot* slot) {
  return thread->probes.firsts[slot - thread->probes.slots];
}

// The operand is a pointer into `object`, which is known now.
CountSlot* ProbedAccess::slot_inside(ThreadState* thread, Item& item, uint64_t object) {
  item.object = object;
  item.klass_word = klass_word_of(*path_->layout, object);
  inside_of(thread, item.base) = {item.base, object};
  return slot_of(thread, item);
}

CountSlot* ProbedAccess::slot_of(ThreadState* thread, const Item& item) {
  uint64_t hash = (item.key * 0x9e3779b97f4a7c15ull) ^ (item.klass_word * 0xc2b2ae3d27d4eb4full) ^
                  (item.bytecode_pointer * 0x165667b19e3779f9ull);
  return &thread->probes.slots[(hash >> 40) % ProbeBuffer::kSlots];
}

void ProbedAccess::add_one(ThreadState* thread, CountSlot* slot) {
  if (slot->count++ != 0) return;
  auto index = static_cast<uint64_t>(slot - thread->probes.slots);
  thread->probes.with_count[index / 64] |= 1ull << index % 64;
  thread->probes.counted = true;
}

// True if the slot has one like it: then it is dealt with.
bool ProbedAccess::count_again(ThreadState* thread, CountSlot* slot, const Item& item) {
  if (!hit(*slot, item)) return false;
  if (thread->probes.muted) return true;
#ifdef CLASSACCESS_VERIFY
  if (slot->selected) g_claims.claim(item.address, item.object, first_of(thread, slot).class_id);
#endif
  if (!slot->selected) {
    ++thread->counters.filtered;
    return true;
  }
  if (!g_single_rows.load(std::memory_order_relaxed)) {
    add_one(thread, slot);
    return true;
  }
  AccessRecord one = first_of(thread, slot);
  if (slot->elements) {
    uint64_t length = load_twin<uint32_t>(*path_->layout, item.object + path_->layout->array_length_offset);
    one.extent = slot->offset + (length << slot->log2_element);
  }
  one.t_ns = item.t_ns;
  one.address = item.address;
  one.object = item.object;
  one.virtual_id = thread->probes.virtual_id;
  one.gc_id = g_gc_id.load(std::memory_order_relaxed);
  push_record(thread, one);
  return true;
}

bool ProbedAccess::take_slowly(ThreadState* thread, const Probe& probe, Item& item, CountSlot* slot, bool named) {
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
    bool not_selected = found.kind == Resolution::kObject && !found.class_info->selected;
    if (not_selected && !named) slot = slot_inside(thread, item, found.object);
    if (slot != nullptr && not_selected && found.object == item.object) {
      install(thread, slot, item, record, probed.resolution.class_info, probed.resolution.mirror);
      slot->selected = false;
    }
    return true;
  }
  bool plain = record.kind == RecordKind::kAccess && record.class_id != 0;
  if (plain && slot == nullptr && !named) {
    slot = slot_inside(thread, item, record.object);
    if (count_again(thread, slot, item)) return true;
  }
  if (slot != nullptr && plain && record.object == item.object) {
    install(thread, slot, item, record, probed.resolution.class_info, probed.resolution.mirror);
    if (!g_single_rows.load(std::memory_order_relaxed)) {
      add_one(thread, slot);
      return true;
    }
  }
  push_record(thread, record);
  return true;
}

void ProbedAccess::install(ThreadState* thread, CountSlot* slot, const Item& item, const AccessRecord& record,
                           const ClassInfo* info, bool mirror) {
  hand_on(thread, slot);
  slot->key = item.key;
  slot->bytecode_pointer = item.bytecode_pointer;
  slot->klass_word = item.klass_word;
  slot->epoch = g_gc_id.load(std::memory_order_relaxed);
  slot->size = item.size;
  first_of(thread, slot) = record;
  slot->selected = true;
  slot->object = info->is_mirror || mirror ? item.object : 0;
  slot->offset = static_cast<uint32_t>(item.address - item.object);
  slot->elements = false;
  if (!mirror && info->is_array) {
    uint32_t base = array_base(info->layout_helper);
    if (slot->offset >= base) {
      slot->elements = true;
      slot->offset = base;
      slot->log2_element = static_cast<uint8_t>(log2_element_size(info->layout_helper));
    }
  }
}

void ProbedAccess::hand_on(ThreadState* thread, CountSlot* slot) {
  if (slot->count == 0) return;
  AccessRecord record = first_of(thread, slot);
  record.value = slot->count;
  record.flags |= kFlagRepeat;
  record.t_ns = monotonic_ns();
  record.virtual_id = thread->probes.virtual_id;
  push_record(thread, record);
  slot->count = 0;
}

void ProbedAccess::flush(ThreadState* thread) {
  ProbeBuffer& buffer = thread->probes;
  if (!buffer.counted) return;
  buffer.counted = false;
  for (uint32_t word = 0; word < ProbeBuffer::kSlots / 64; ++word) {
    for (uint64_t left = buffer.with_count[word]; left != 0; left &= left - 1) {
      hand_on(thread, &buffer.slots[64 * word + static_cast<uint32_t>(__builtin_ctzll(left))]);
    }
    buffer.with_count[word] = 0;
  }
}

}  // namespace classaccess
