// Records like one that was resolved before: most of them. They are counted without being resolved anew, by
// what the slot says of the object; anything that does not fit goes the long way (probed_access.cc).
#include "agent/base/counters.h"
#include "agent/fault/probed_access.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/heap/claims.h"
#endif
#include "agent/heap/object_header.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

template <typename T>
T load_twin(const VmLayout& layout, uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const T*>(twin_address(layout, address)), __ATOMIC_RELAXED);
}

uint64_t bytecode_pointer_of(const ProbeRecord& record) {
  const auto* words = reinterpret_cast<const uint64_t*>(&record);
  return (record.head & kRecordInterpreted) != 0 ? words[record_words_of(record.head) - 2] : 0;
}

}  // namespace

// What a slot knows its class by. False: forwarded (Shenandoah), the Klass of compact headers is at the copy.
bool ProbedAccess::klass_word(uint64_t object, uint64_t* word) const {
  const VmLayout& layout = *path_->layout;
  if (layout.compact_headers) {
    const auto mark = load_twin<uint64_t>(layout, object);
    *word = mark >> layout.mark_klass_shift;
    return (mark & 3) != 3;
  }
  *word = layout.compressed_class_pointers ? load_twin<uint32_t>(layout, object + layout.klass_offset)
                                           : load_twin<uint64_t>(layout, object + layout.klass_offset);
  return true;
}

// Whether the address lies where the slot says. The class is the slot's.
bool ProbedAccess::fits(const CountSlot& slot, uint64_t object, uint64_t address) const {
  const uint64_t offset = address - object;
  if (slot.kind == SlotKind::kField) return offset == slot.offset && (slot.object == 0 || slot.object == object);
  if (slot.kind != SlotKind::kElements) return false;
  return offset >= slot.offset && offset + slot.size <= elements_end(slot, object);
}

uint64_t ProbedAccess::elements_end(const CountSlot& slot, uint64_t object) const {
  const uint64_t length = load_twin<uint32_t>(*path_->layout, object + path_->layout->array_length_offset);
  return slot.offset + (length << slot.log2_element);
}

uint64_t ProbedAccess::again(ThreadState* thread, uint64_t at, uint64_t end) {
  const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
  const uint64_t key = probe_id_of(record.head);
  const uint64_t bytecode_pointer = bytecode_pointer_of(record);
  CountSlots& counts = thread->probes.counts;
  CountSlot* slot = counts.last_of(key, bytecode_pointer);
  // A collection may have unloaded the class and put another one there.
  if (slot->key != key || slot->bytecode_pointer != bytecode_pointer ||
      slot->epoch != g_gc_id.load(std::memory_order_relaxed) || slot->named == SlotObject::kSearched) {
    return 0;
  }
  if (slot->selected && g_single_rows.load(std::memory_order_relaxed)) return 0;
  if (slot->kind >= SlotKind::kMark) return new_object_again(thread, slot, at, end);
  uint64_t object, word;
  if (slot->named == SlotObject::kAddress) {
    object = record.address - static_cast<uint64_t>(int64_t{slot->displacement});
  } else {
    object = record.more[0];
  }
  if (!starts_->is_set(object) || !klass_word(object, &word) || word != slot->klass_word ||
      !fits(*slot, object, record.address)) {
    return 0;
  }
#ifdef CLASSACCESS_VERIFY
  if (slot->selected) g_claims.claim(record.address, object, counts.first_of(slot).class_id);
#endif
  ++thread->counters.probed;
  if (slot->selected) {
    counts.add_one(slot);
  } else {
    ++thread->counters.filtered;
  }
  return at + record_bytes_of(record.head);
}

// The stores of mark word, Klass and length of one new object, all in the buffer, each by the probe that has made
// it before. That another record follows proves that the last of them was made.
uint64_t ProbedAccess::new_object_again(ThreadState* thread, CountSlot* slot, uint64_t at, uint64_t end) {
  ProbeBuffer& buffer = thread->probes;
  CountSlots& counts = buffer.counts;
  const uint64_t object = reinterpret_cast<const ProbeRecord*>(at)->address - slot->offset;
  CountSlot* stores[3];
  uint32_t count = 0;
  for (CountSlot* one = slot;; one = counts.at(one->partner)) {
    const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
    if (at >= end || count == 3 || one->key != probe_id_of(record.head) ||
        one->bytecode_pointer != bytecode_pointer_of(record) || one->klass_word != slot->klass_word ||
        one->epoch != slot->epoch || one->kind < SlotKind::kMark || one->selected != slot->selected ||
        record.address != object + one->offset) {
      return 0;
    }
    stores[count++] = one;
    at += record_bytes_of(record.head);
    if (one->partner == CountSlot::kNoPartner) break;
  }
  uint64_t word;
  if (at >= end || (object & (path_->layout->object_alignment - 1)) != 0 || object < path_->layout->heap_low ||
      object >= path_->layout->heap_high || !klass_word(object, &word) || word != slot->klass_word) {
    return 0;
  }
  const ClassInfo& info = path_->classes->row(counts.first_of(slot).class_id);
  const uint64_t bytes = object_size(*path_->layout, info, object);
  if (bytes == 0 || buffer.fresh.has_pending(object, object + bytes)) return 0;
  if (!path_->resolver->note_new_object(object, bytes, &thread->hints)) return 0;
#ifdef CLASSACCESS_VERIFY
  for (uint32_t i = 0; i < count; ++i) g_claims.claim(object + stores[i]->offset, object, info.id);
#endif
  thread->counters.probed += count;
  if (!slot->selected) return at;
  for (uint32_t i = 0; i < count; ++i) counts.add_one(stores[i]);
  return at;
}

// A store that began to make an object, or has made it: what it learns is used by new_object_again.
void ProbedAccess::learn_new_object(ThreadState* thread, const Item& item, const AccessRecord& record,
                                    const ClassInfo* info) {
  const VmLayout& layout = *path_->layout;
  ProbeBuffer& buffer = thread->probes;
  NewObject::Store now;
  now.at = item.at;
  now.next = item.next;
  now.address = item.address;
  now.epoch = g_gc_id.load(std::memory_order_relaxed);
  now.displacement = item.displacement;
  now.key = item.key;
  now.bytecode_pointer = item.bytecode_pointer;
  now.record = record;
  const NewObject::Store first = buffer.fresh.before[0], second = buffer.fresh.before[1];
  buffer.fresh.before[1] = first;
  buffer.fresh.before[0] = now;
  if (record.kind != RecordKind::kKlassStore || info == nullptr || info->is_mirror || info->is_stack_chunk) return;
  const uint64_t last = info->is_array ? layout.array_length_offset : layout.klass_offset;
  if (item.address - record.object != last) return;
  // From the last store to the first.
  const NewObject::Store* group[3] = {&now, &first, &second};
  uint64_t offsets[3] = {last, info->is_array ? layout.klass_offset : 0, 0};
  SlotKind kinds[3] = {info->is_array ? SlotKind::kLength : SlotKind::kKlass,
                       info->is_array ? SlotKind::kKlass : SlotKind::kMark, SlotKind::kMark};
  uint32_t count = info->is_array ? 3 : 2;
  if (layout.compact_headers) --count;
  for (uint32_t i = 1; i < count; ++i) {
    if (group[i]->next != group[i - 1]->at || group[i]->address != record.object + offsets[i] ||
        group[i]->epoch != now.epoch) {
      return;
    }
  }
  uint64_t word;
  if (!klass_word(record.object, &word)) return;
  const bool selected = info->selected;
  uint32_t behind = CountSlot::kNoPartner;
  for (uint32_t i = 0; i < count; ++i) {
    const NewObject::Store& store = *group[i];
    CountSlot* slot = buffer.counts.victim(buffer.counts.set_of(store.key, store.bytecode_pointer, word), now.epoch);
    // Two of one group in one set: the second must not displace the first.
    if (behind != CountSlot::kNoPartner && buffer.counts.index_of(slot) == behind) return;
    hand_on(thread, slot);
    *slot = {};
    slot->key = store.key;
    slot->bytecode_pointer = store.bytecode_pointer;
    slot->klass_word = word;
    slot->epoch = now.epoch;
    slot->offset = static_cast<uint32_t>(offsets[i]);
    slot->size = store.record.size;
    slot->displacement = store.displacement;
    slot->partner = behind;
    slot->kind = kinds[i];
    slot->named = SlotObject::kAddress;
    slot->selected = selected;
    AccessRecord& one = buffer.counts.first_of(slot);
    one = store.record;
    one.kind = RecordKind::kKlassStore;
    one.object = record.object;
    one.extent = record.extent;
    one.class_id = info->id;
    one.flags = record.flags;
    behind = buffer.counts.index_of(slot);
    buffer.counts.note_last(slot);
  }
}

}  // namespace classaccess
