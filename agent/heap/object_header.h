// Reading object headers: the class and size of an object, and whether a word can be
// a mark word. Objects are read on the twin view (object + layout.twin_distance),
// Klasses and metadata where they are.
// Source: share/oops/klass.hpp (layout helper), markWord.hpp, oop.inline.hpp,
// instanceMirrorKlass, instanceStackChunkKlass.inline.hpp; JDK 17 to 25.
// Context: signal handler and any thread; safe loads only.
#pragma once

#include <cstdint>

#include "agent/base/safe_load.h"
#include "agent/heap/class_table.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

// Address of an object's (or any heap) byte on the view that is never closed.
inline uint64_t twin_address(const VmLayout& layout, uint64_t heap_address) {
  return heap_address + static_cast<uint64_t>(layout.twin_distance);
}

inline uint64_t decode_narrow_klass(const VmLayout& layout, uint32_t narrow) {
  return narrow == 0 ? 0 : layout.narrow_klass_base + (static_cast<uint64_t>(narrow) << layout.narrow_klass_shift);
}

// The Klass* in the header at `object`, 0 if none is written or it cannot be read. The
// answer is a candidate: only ClassTable decides whether a Klass is there.
inline uint64_t klass_of(const VmLayout& layout, uint64_t object) {
  uint64_t at = twin_address(layout, object);
  if (layout.compact_headers) {
    uint64_t mark;
    if (!safe_load(at, &mark)) return 0;
    // Moved by Shenandoah: the mark word is the new copy's address, and the Klass is there.
    if ((mark & 3) == 3 && layout.collector == Collector::kShenandoah &&
        (mark < layout.heap_low + 3 || mark >= layout.heap_high || !safe_load(twin_address(layout, mark - 3), &mark))) {
      return 0;
    }
    return decode_narrow_klass(layout, static_cast<uint32_t>(mark >> layout.mark_klass_shift));
  }
  if (layout.compressed_class_pointers) {
    uint32_t narrow;
    return safe_load(at + layout.klass_offset, &narrow) ? decode_narrow_klass(layout, narrow) : 0;
  }
  uint64_t klass;
  return safe_load(at + layout.klass_offset, &klass) ? klass : 0;
}

inline uint64_t align_object_size(const VmLayout& layout, uint64_t bytes) {
  uint64_t mask = static_cast<uint64_t>(layout.object_alignment) - 1;
  return (bytes + mask) & ~mask;
}

// Array classes: offset of element 0 and size of an element.
inline uint32_t array_base(int32_t layout_helper) { return (static_cast<uint32_t>(layout_helper) >> 16) & 0xff; }
inline uint32_t log2_element_size(int32_t layout_helper) { return static_cast<uint32_t>(layout_helper) & 0x3f; }

// Size in bytes of the object at `object`, whose class is `info`; 0 if it cannot be
// read or is not plausible (negative length or size).
inline uint64_t object_size(const VmLayout& layout, const ClassInfo& info, uint64_t object) {
  uint64_t at = twin_address(layout, object);
  if (info.is_array) {
    int32_t length;
    if (!safe_load(at + layout.array_length_offset, &length) || length < 0) return 0;
    uint64_t elements = static_cast<uint64_t>(length) << log2_element_size(info.layout_helper);
    return align_object_size(layout, array_base(info.layout_helper) + elements);
  }
  if (info.is_mirror) {
    int32_t words;
    if (!safe_load(at + static_cast<uint64_t>(layout.mirror_oop_size), &words) || words <= 0) return 0;
    return static_cast<uint64_t>(words) * 8;
  }
  if (info.is_stack_chunk && layout.stack_chunk_size != 0) {
    int32_t stack_words;
    if (!safe_load(at + layout.stack_chunk_size, &stack_words) || stack_words < 0) return 0;
    // Behind the stack: one bit for each slot that may hold an oop, in whole words.
    uint64_t words = static_cast<uint64_t>(stack_words);
    uint64_t bitmap_words = ((layout.compressed_oops ? words * 2 : words) + 63) / 64;
    return align_object_size(layout, info.instance_size + 8 * (words + bitmap_words));
  }
  return info.instance_size;
}

// Whether `mark` can be the mark word of an object a Java thread may see. No proof, but
// most other words fail.
inline bool mark_is_plausible(uint64_t mark, const VmLayout& layout) {
  uint64_t hash_end = layout.mark_hash_shift + layout.mark_hash_bits;
  uint64_t age_end = layout.mark_age_shift + 4;
  uint64_t gap = ((1ull << layout.mark_hash_shift) - 1) & ~((1ull << age_end) - 1);
  uint64_t bit2 = mark & 4;  // biased (17), unused (21), self-forwarded (25)
  uint64_t lock = mark & 3;
  bool pointer = (mark >> 47) == 0 && (mark >> 12) != 0;
  if (lock == 3) {
    // A forwarding pointer: Java threads see one only while Shenandoah evacuates.
    return layout.collector == Collector::kShenandoah && pointer;
  }
  if (layout.compact_headers) return (mark >> layout.mark_klass_shift) != 0 && (mark & gap) == 0 && bit2 == 0;
  // Locked, header displaced: a BasicLock on a stack, or an ObjectMonitor in C heap memory.
  if (lock != 1 && pointer && bit2 == 0) return true;
  if (layout.biased_locking && (mark & 7) == 5) return true;
  if (lock == 0 && layout.jdk_major < 21) return false;  // no lightweight locking: 0 is no mark
  return (mark >> hash_end) == 0 && (mark & gap) == 0 && bit2 == 0;
}

}  // namespace classaccess
