#include "agent/heap/resolver.h"

#include <atomic>

#include "agent/base/counters.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/heap/claims.h"
#endif
#include "agent/heap/object_header.h"

namespace classaccess {
namespace {

// Starts that turned out stale before we give up looking further down.
constexpr int kMaxStaleStarts = 8;
// How far below an address Shenandoah's unmarked copies are looked for.
constexpr uint64_t kScanBytes = 4096;

template <typename T>
T load_at(uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_RELAXED);
}

}  // namespace

bool Resolver::accept(uint64_t object, uint64_t address, bool check_mark, Resolution* out) {
  if ((object & (layout_->object_alignment - 1)) != 0 || object < layout_->heap_low || object >= layout_->heap_high ||
      address < object) {
    return false;
  }
  uint64_t twin = object + static_cast<uint64_t>(layout_->twin_distance);
  if (check_mark && !mark_is_plausible(load_at<uint64_t>(twin), *layout_)) return false;
  uint64_t klass = klass_of(*layout_, object);
  if (klass == 0) return false;
  ClassInfo* info = classes_->find_or_add(klass);
  if (info == nullptr) return false;
  uint64_t size = object_size(*layout_, *info, object);
  // A new array's length word may still hold what was there before: the header is the
  // array's whatever it says.
  uint64_t header = info->is_array ? layout_->array_length_offset + 4 : 0;
  if (size < header) size = header;
  if (address - object >= size) return false;
  out->kind = Resolution::kObject;
  out->object = object;
  out->extent = size;
  out->class_info = info;
  return true;
}

Resolution Resolver::finish(Resolution found, uint64_t address, ResolverHints* hints) {
  hints->last_object = found.object;
  hints->last_end = found.object + found.extent;
  hints->last_class = found.class_info;
  hints->last_klass = found.class_info->klass;
  hints->last_epoch = g_gc_id.load(std::memory_order_relaxed);
  if (found.class_info->is_mirror && address - found.object >= found.class_info->instance_size) {
    // Static fields lie behind the mirror's own ones.
    uint64_t twin = found.object + static_cast<uint64_t>(layout_->twin_distance);
    uint64_t klass = load_at<uint64_t>(twin + static_cast<uint64_t>(layout_->mirror_klass));
    ClassInfo* holder = klass != 0 ? classes_->find_or_add_of_mirror(klass) : nullptr;
    if (holder != nullptr) {
      found.class_info = holder;
      found.mirror = true;
    }
  }
  return found;
}

bool Resolver::in_own_tlab(uint64_t address, const ResolverHints& hints) const {
  if (hints.java_thread == 0) return false;
  uint64_t tlab = hints.java_thread + layout_->java_thread_tlab;
  uint64_t start = load_at<uint64_t>(tlab + layout_->tlab_start);
  uint64_t top = load_at<uint64_t>(tlab + layout_->tlab_top);
  bool has_floor = hints.tlab_floor >= start && hints.tlab_floor <= top;
  return address >= (has_floor ? hints.tlab_floor : start) && address < top;
}

// An object that the instruction's operand, or else any register, points at. JIT and
// interpreter code keeps it there though the operand's base is a computed address.
bool Resolver::accept_register(const ResolveQuery& query, Resolution* out) {
  for (int i = 0; i < query.candidate_count; ++i) {
    if (accept(query.candidates[i], query.address, true, out)) return true;
  }
  for (int i = 0; query.registers != nullptr && i < 16; ++i) {
    if (accept(query.registers[i], query.address, true, out)) return true;
  }
  // libjvm's loops over an array keep only its first element's address
  // (java_lang_String::equals).
  uint64_t header = (layout_->array_length_offset + 4 + 7) & ~uint64_t{7};
  for (int i = 0; query.registers != nullptr && i < 16; ++i) {
    Resolution array;
    if (query.registers[i] > header && accept(query.registers[i] - header, query.address, true, &array) &&
        array.class_info->is_array && array_base(array.class_info->layout_helper) == header) {
      *out = array;
      return true;
    }
  }
  return false;
}

// The nearest word below that is a possible mark word with a known Klass behind it, of an
// object that reaches to the address. Only where the collector's threads copy objects
// while the program runs, so that nothing better is known of the copy.
bool Resolver::accept_below(uint64_t address, Resolution* out) {
  uint64_t object = address & ~(static_cast<uint64_t>(layout_->object_alignment) - 1);
  for (uint64_t end = object > kScanBytes ? object - kScanBytes : 0; object > end && object >= layout_->heap_low;
       object -= layout_->object_alignment) {
    uint64_t klass = klass_of(*layout_, object);
    if (klass != 0 && classes_->find(klass) != nullptr && accept(object, address, true, out)) return true;
  }
  return false;
}

// The first store since the thread got its TLAB is to that TLAB's first object: whatever
// is marked there is older than it (Shenandoah recycles regions between two pauses).
void Resolver::forget_new_tlab(ResolverHints* hints) {
  uint64_t tlab = hints->java_thread + layout_->java_thread_tlab;
  uint64_t start = load_at<uint64_t>(tlab + layout_->tlab_start);
  if (start == hints->tlab_start) return;
  if (start != 0) {
    // The thread may be running, and take another one: halves of two would span other threads' objects.
    std::atomic_thread_fence(std::memory_order_acquire);
    uint64_t end = load_at<uint64_t>(tlab + layout_->tlab_end);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (end <= start || load_at<uint64_t>(tlab + layout_->tlab_start) != start) return;
    starts_->clear_range(start, end);
  }
  hints->tlab_start = start;
}

Resolution Resolver::resolve(const ResolveQuery& query, ResolverHints* hints) {
  Resolution found = find(query, hints);
#ifdef CLASSACCESS_VERIFY
  g_claims.claim(query.address, found);
#endif
  return found;
}

Resolution Resolver::find(const ResolveQuery& query, ResolverHints* hints) {
  const uint64_t address = query.address;
  Resolution found;
  if (query.op != Op::kLoad && hints->java_thread != 0) forget_new_tlab(hints);
  // The last object again: most accesses of a loop.
  if (address >= hints->last_object && address < hints->last_end &&
      hints->last_epoch == g_gc_id.load(std::memory_order_relaxed) && starts_->is_set(hints->last_object) &&
      klass_of(*layout_, hints->last_object) == hints->last_klass) {
    found.kind = Resolution::kObject;
    found.object = hints->last_object;
    found.extent = hints->last_end - hints->last_object;
    found.class_info = hints->last_class;
    return finish(found, address, hints);
  }
  // A register that points at a marked start.
  for (int i = 0; i < query.candidate_count; ++i) {
    uint64_t object = query.candidates[i];
    if (starts_->is_set(object) && accept(object, address, false, &found)) return finish(found, address, hints);
  }
  // The nearest marked start below.
  uint64_t below = address;
  for (int i = 0; i < kMaxStaleStarts; ++i) {
    uint64_t object = starts_->at_or_below(below, layout_->heap_low);
    if (object == 0) break;
    if (accept(object, address, false, &found)) return finish(found, address, hints);
    if (klass_of(*layout_, object) != 0 && found.kind == Resolution::kUnknown) {
      // A valid object that ends before the address: nothing lower can cover it.
      uint64_t klass = klass_of(*layout_, object);
      ClassInfo* info = classes_->find(klass);
      if (info != nullptr && object_size(*layout_, *info, object) != 0) break;
    }
    if (object == layout_->heap_low) break;
    below = object - 8;
  }
  bool store = query.op != Op::kLoad;
  // Every object of the thread's own TLAB was allocated by it, so its header store
  // would have been seen: what is not marked is still being initialised. Old
  // contents there may look like an object.
  if (store && in_own_tlab(address, *hints)) {
    found.kind = Resolution::kPending;
    found.fresh = true;
    return found;
  }
  // A plain store of the VM's may be to a new object whose header is not written yet (an
  // array's length is stored before its Klass), over the contents of an old one.
  if (query.java_code || query.op != Op::kStore) {
    if (accept_register(query, &found)) return finish(found, address, hints);
    if (layout_->collector == Collector::kShenandoah && accept_below(address, &found)) {
      return finish(found, address, hints);
    }
  }
  found.kind = store ? Resolution::kPending : Resolution::kUnknown;
  return found;
}

Resolution Resolver::note_header_store(uint64_t address, uint32_t size, bool length_valid) {
  Resolution none;
  const VmLayout& layout = *layout_;
  if (size != 4 && size != 8) return none;
  uint64_t object = address - layout.klass_offset;
  if ((object & (layout.object_alignment - 1)) != 0 || object < layout.heap_low) return none;
  uint64_t twin = object + static_cast<uint64_t>(layout.twin_distance);
  if (!mark_is_plausible(load_at<uint64_t>(twin), layout)) return none;
  uint64_t klass = klass_of(layout, object);
  if (klass == 0) return none;
  ClassInfo* info = classes_->find_or_add(klass);
  if (info == nullptr) return none;
  Resolution found;
  found.kind = Resolution::kObject;
  found.object = object;
  found.class_info = info;
  // JIT code stores an array's length behind its Klass: until then only the header
  // is known to be this object's.
  bool header_only = info->is_array && !length_valid;
  found.extent = header_only ? layout.array_length_offset + 4 : object_size(layout, *info, object);
  if (found.extent == 0) return none;
  starts_->set(object);
  starts_->clear_range(object + 8, object + found.extent);
#ifdef CLASSACCESS_VERIFY
  g_claims.claim(address, found);
#endif
  return found;
}

bool Resolver::note_new_object(uint64_t object, uint64_t bytes, ResolverHints* hints) {
  if (hints->java_thread != 0) forget_new_tlab(hints);
  if (starts_->is_set(object)) return false;
  hints->last_end = 0;
  hints->evacuated = 0;
  starts_->set(object);
  starts_->clear_range(object + 8, object + bytes);
  return true;
}

bool Resolver::is_rewritten(const Resolution& before) const {
  return before.kind == Resolution::kObject && !before.class_info->is_array && starts_->is_set(before.object) &&
         klass_of(*layout_, before.object) == before.class_info->klass;
}

bool Resolver::is_length_store(const Resolution& resolution, uint64_t address) const {
  return resolution.kind == Resolution::kObject && resolution.class_info->is_array && !resolution.mirror &&
         address == resolution.object + layout_->array_length_offset;
}

uint64_t Resolver::walk(uint64_t from, uint64_t top, uint64_t (*skip)(uint64_t at, void* context), void* context) {
  uint64_t at = from;
  while (at < top) {
    uint64_t behind = skip != nullptr ? skip(at, context) : at;
    if (behind != at) {
      at = behind;
      continue;
    }
    uint64_t klass = klass_of(*layout_, at);
    ClassInfo* info = klass != 0 ? classes_->find_or_add(klass) : nullptr;
    uint64_t size = info != nullptr ? object_size(*layout_, *info, at) : 0;
    if (size == 0 || size > top - at) return at;
    starts_->set(at);
    at += size;
  }
  return at;
}

}  // namespace classaccess
