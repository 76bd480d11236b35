// The counts that one thread's probed accesses become while no single rows are wanted.
//
// A slot stands for the accesses of one probe (in the interpreter: and bytecode) to objects of one class,
// and says by what one more of them is known. Four places each; when all are taken the slot with the fewest
// accesses since it was handed on goes. The table begins small and grows where slots crowd each other out, so
// that a thread with few sites costs few pages.
// Context: whoever holds the thread's drain lock (probe_buffer.h).
#pragma once

#include <cstdint>

#include "classaccess/record.h"

namespace classaccess {

enum class SlotKind : uint8_t {
  kField,     // at a fixed place in the object
  kElements,  // any element of an array
  // The stores that make an object, in the order in which compiled code makes them; `partner` leads from one to
  // the next. With compact headers there is no kKlass.
  kMark,
  kKlass,
  kLength,
};

// Where the record names the object.
enum class SlotObject : uint8_t {
  kSearched,  // nowhere: a pointer into it
  kAddress,   // the address less the displacement
  kBase,      // the base of an indexed operand
};

struct alignas(64) CountSlot {
  static constexpr uint32_t kNoPartner = UINT32_MAX;

  uint64_t key = 0;  // probe id, with a mask also the bytes touched; 0: free
  uint64_t bytecode_pointer = 0;
  uint64_t klass_word = 0;
  uint64_t object = 0;  // mirrors: only this object; else 0
  uint64_t count = 0;
  uint32_t epoch = 0;   // g_gc_id when it was made
  uint32_t offset = 0;  // in the object; of the first element if kElements
  uint32_t size = 0;
  int32_t displacement = 0;  // of the operand
  uint32_t partner = kNoPartner;  // index of the next slot
  SlotKind kind = SlotKind::kField;
  SlotObject named = SlotObject::kSearched;
  uint8_t log2_element = 0;
  bool selected = false;
};
static_assert(sizeof(CountSlot) == 64);

class CountSlots {
 public:
  static constexpr uint32_t kSlots = 32768;
  static constexpr uint32_t kWays = 4;

  // Memory for kSlots of each, zeroed. (A ThreadState is zeroed memory itself: no constructor has run.)
  void use(CountSlot* slots, AccessRecord* firsts) {
    slots_ = slots;
    firsts_ = firsts;
    sets_ = kSetsAtFirst;
    crowded_out_ = 0;
  }

  CountSlot* at(uint32_t index) { return &slots_[index]; }
  uint32_t index_of(const CountSlot* slot) const { return static_cast<uint32_t>(slot - slots_); }
  // The first access that the slot stands for.
  AccessRecord& first_of(const CountSlot* slot) { return firsts_[slot - slots_]; }

  // The slot found last for this probe and bytecode: any, of any epoch, if there was none.
  CountSlot* last_of(uint64_t key, uint64_t bytecode_pointer) { return &slots_[last_[last_index(key, bytecode_pointer)]]; }
  void note_last(const CountSlot* slot) { last_[last_index(slot->key, slot->bytecode_pointer)] = index_of(slot); }

  // The kWays slots in which one with these may lie.
  CountSlot* set_of(uint64_t key, uint64_t bytecode_pointer, uint64_t klass_word) {
    const uint64_t hash = mix(key, bytecode_pointer) ^ (klass_word * 0xc2b2ae3d27d4eb4full);
    return &slots_[((hash >> 40) & (sets_ - 1)) * kWays];
  }
  // Which of them to give up for a new one.
  CountSlot* victim(CountSlot* set, uint32_t epoch);

  void add_one(CountSlot* slot) {
    if (slot->count++ != 0) return;
    const uint32_t index = index_of(slot);
    with_count_[index / 64] |= 1ull << index % 64;
    counted_ = true;
  }

  // Calls hand_on(slot) for each that has a count; it sets that to 0.
  template <typename F>
  void flush(F&& hand_on) {
    if (!counted_) return;
    counted_ = false;
    for (uint32_t word = 0; word < kSlots / 64; ++word) {
      const uint64_t bits = with_count_[word];
      with_count_[word] = 0;
      for (uint64_t left = bits; left != 0; left &= left - 1) {
        CountSlot* slot = &slots_[64 * word + static_cast<uint32_t>(__builtin_ctzll(left))];
        if (slot->count != 0) hand_on(slot);
      }
    }
  }

 private:
  static constexpr uint32_t kLast = 4096;
  static constexpr uint32_t kSetsAtFirst = 256;

  static uint64_t mix(uint64_t key, uint64_t bytecode_pointer) {
    return (key * 0x9e3779b97f4a7c15ull) ^ (bytecode_pointer * 0x165667b19e3779f9ull);
  }
  static uint64_t last_index(uint64_t key, uint64_t bytecode_pointer) {
    return (mix(key, bytecode_pointer) >> 40) % kLast;
  }

  CountSlot* slots_ = nullptr;
  AccessRecord* firsts_ = nullptr;
  uint32_t sets_ = 0;
  uint32_t crowded_out_ = 0;            // slots given up since the table grew
  bool counted_ = false;                // some slot has a count
  uint64_t with_count_[kSlots / 64] = {};  // which, a bit each
  uint32_t last_[kLast] = {};
};

}  // namespace classaccess
