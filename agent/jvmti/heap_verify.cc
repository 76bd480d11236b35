#include "agent/jvmti/heap_verify.h"

#include <string.h>

#include <string>

#include "agent/base/raw_log.h"
#include "agent/base/safe_load.h"
#include "agent/heap/object_header.h"
#include "agent/jvmti/open_tlabs.h"

namespace classaccess {

HeapVerify g_heap_verify;

namespace {

constexpr int kMostSaid = 50;

template <typename T>
T load(const VmLayout& layout, uint64_t heap_address) {
  T value{};
  safe_load(twin_address(layout, heap_address), &value);
  return value;
}

}  // namespace

bool HeapVerify::create(const VmLayout* layout, const ClassTable* classes, uint64_t tlab_reserve) {
  layout_ = layout;
  classes_ = classes;
  tlab_reserve_ = tlab_reserve;
  bool checked = layout->collector == Collector::kSerial || layout->collector == Collector::kParallel ||
                 layout->collector == Collector::kG1;
  return !checked || g_claims.create(layout->heap_low, layout->heap_high);
}

HeapVerify::KlassShape* HeapVerify::shape(uint64_t klass) {
  auto known = shapes_.find(klass);
  if (known != shapes_.end()) return &known->second;
  KlassShape made;
  uint64_t symbol = 0;
  if (klass == 0 || !safe_load(klass + layout_->klass_layout_helper, &made.layout_helper) || made.layout_helper == 0 ||
      !safe_load(klass + layout_->klass_name, &symbol) || symbol == 0 ||
      !safe_load(symbol + layout_->symbol_length, &made.name_length)) {
    return nullptr;
  }
  made.name = symbol + layout_->symbol_body;
  char first = 0;
  if (made.name_length == 0 || !safe_load(made.name, &first)) return nullptr;
  std::string name(reinterpret_cast<const char*>(made.name), made.name_length);
  made.is_mirror = name == "java/lang/Class";
  made.is_stack_chunk = name == "jdk/internal/vm/StackChunk";
  return &(shapes_[klass] = made);
}

// The layout helper is an instance's size (bit 0: not allocated in the fast path), or negative: header bytes of an
// array in bits 16 to 23, log2 of the element size in the low byte (share/oops/klass.hpp).
uint64_t HeapVerify::size_of(const KlassShape& shape, uint64_t object) const {
  uint64_t bytes = static_cast<uint64_t>(static_cast<uint32_t>(shape.layout_helper)) & ~uint64_t{7};
  if (shape.layout_helper < 0) {
    int32_t length = load<int32_t>(*layout_, object + layout_->array_length_offset);
    if (length < 0) return 0;
    uint32_t helper = static_cast<uint32_t>(shape.layout_helper);
    bytes = (helper >> 16 & 0xff) + (static_cast<uint64_t>(length) << (helper & 0xff));
  } else if (shape.is_mirror) {
    int32_t words = load<int32_t>(*layout_, object + static_cast<uint64_t>(layout_->mirror_oop_size));
    if (words <= 0) return 0;
    bytes = 8 * static_cast<uint64_t>(words);
  } else if (shape.is_stack_chunk) {
    int32_t words = load<int32_t>(*layout_, object + layout_->stack_chunk_size);
    if (words < 0) return 0;
    uint64_t slots = static_cast<uint64_t>(words) * (layout_->compressed_oops ? 2 : 1);
    bytes += 8 * (static_cast<uint64_t>(words) + (slots + 63) / 64);
  }
  uint64_t mask = static_cast<uint64_t>(layout_->object_alignment) - 1;
  return (bytes + mask) & ~mask;
}

bool HeapVerify::is_class(KlassShape* shape, uint32_t class_id) const {
  if (shape->same_class_id == class_id) return true;
  const ClassInfo& info = classes_->row(class_id);
  if (info.name_length != shape->name_length ||
      memcmp(info.name, reinterpret_cast<const void*>(shape->name), shape->name_length) != 0) {
    return false;
  }
  shape->same_class_id = class_id;
  return true;
}

// A static field's class is the one whose mirror the object is.
bool HeapVerify::class_agrees(KlassShape* shape_of_object, uint64_t object, uint32_t class_id) {
  if (is_class(shape_of_object, class_id)) return true;
  if (!shape_of_object->is_mirror) return false;
  KlassShape* holder = shape(load<uint64_t>(*layout_, object + static_cast<uint64_t>(layout_->mirror_klass)));
  return holder != nullptr && is_class(holder, class_id);
}

void HeapVerify::say(uint64_t address, uint64_t object, const KlassShape& found, const Claims::Claim& claim) {
  if (said_++ >= kMostSaid) return;
  std::string name(reinterpret_cast<const char*>(found.name), found.name_length);
  const ClassInfo& info = classes_->row(Claims::class_of(claim));
  raw_log(LogLevel::kError, "verify: 0x%lx lies in 0x%lx %s; the resolver said 0x%lx %s, %u times, and %u times other",
          address, object, name.c_str(), g_claims.object_of(claim), info.name, claim.count.load(),
          claim.conflicts.load());
}

void HeapVerify::check_object(uint64_t object, uint64_t size, KlassShape* found) {
  Claims::Claim* claim = g_claims.at(object);
  for (uint64_t address = object; address < object + size; address += 8, ++claim) {
    if (claim->said.load(std::memory_order_relaxed) == 0) continue;
    uint64_t count = claim->count.load(std::memory_order_relaxed);
    uint64_t conflicts = claim->conflicts.load(std::memory_order_relaxed);
    bool agrees = g_claims.object_of(*claim) == object && class_agrees(found, object, Claims::class_of(*claim));
    if (!agrees || conflicts != 0) say(address, object, *found, *claim);
    g_verify_counters.verified += agrees ? count : 0;
    g_verify_counters.disagreements += (agrees ? 0 : count) + conflicts;
  }
}

void HeapVerify::count_unverified(uint64_t from, uint64_t to) {
  for (uint64_t address = from; address < to; address += 8) {
    const Claims::Claim& claim = *g_claims.at(address);
    g_verify_counters.unverified +=
        claim.count.load(std::memory_order_relaxed) + claim.conflicts.load(std::memory_order_relaxed);
  }
}

void HeapVerify::check(const HeapSpace* spaces, size_t count) {
  if (!g_claims.created()) return;
  shapes_.clear();
  OpenTlabs tlabs;
  read_tlabs(*layout_, tlab_reserve_, &tlabs);
  for (size_t i = 0; i < count; ++i) {
    const HeapSpace& space = spaces[i];
    if (space.kind == HeapSpace::Kind::kFree || space.kind == HeapSpace::Kind::kHumongousContinues) continue;
    bool humongous = space.kind == HeapSpace::Kind::kHumongousStart;
    uint64_t at = space.bottom;
    while (at < space.top) {
      uint64_t behind = OpenTlabs::skip(at, &tlabs);
      if (behind != at) {
        count_unverified(at, behind < space.end ? behind : space.end);
        at = behind;
        continue;
      }
      KlassShape* found = shape(klass_of(*layout_, at));
      uint64_t size = found != nullptr ? size_of(*found, at) : 0;
      uint64_t most = humongous ? g_claims.high() - at : space.top - at;
      if (size == 0 || size > most) {
        raw_log(LogLevel::kDebug, "verify: parsed 0x%lx to 0x%lx of 0x%lx", space.bottom, at, space.top);
        count_unverified(at, space.top);
        break;
      }
      check_object(at, size, found);
      at += size;
    }
  }
  g_claims.forget_all();
}

}  // namespace classaccess
