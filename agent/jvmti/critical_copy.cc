#include "agent/jvmti/critical_copy.h"

#include <string.h>

#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "agent/base/counters.h"
#include "agent/heap/object_header.h"

namespace classaccess {
namespace {

struct Copy {
  uint64_t elements = 0;
  size_t bytes = 0;
  std::unique_ptr<char[]> given, original;
};

// Never destroyed: native code may release while the process ends.
struct Copies {
  std::mutex mutex;
  std::unordered_map<const void*, Copy> by_address;
};
Copies& copies() {
  static auto* all = new Copies;
  return *all;
}

// One instruction: with mprotect one trap for all of it, where a vector copy is one each.
void copy_bytes(void* to, const void* from, size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// Bytes behind `elements` that are the array's elements; 0 if it cannot be told.
uint64_t array_bytes(Resolver* resolver, const VmLayout& layout, uint64_t elements) {
  // Headers are 12 to 24 bytes (object_header.h).
  uint64_t candidates[4];
  for (uint64_t i = 0; i < 4; ++i) candidates[i] = elements - 12 - 4 * i;
  for (;;) {
    uint32_t epoch = g_gc_id.load(std::memory_order_acquire);
    ResolverHints hints;
    ResolveQuery query;
    query.address = elements;
    query.java_code = true;
    query.candidates = candidates;
    query.candidate_count = 4;
    Resolution found = resolver->resolve(query, &hints);
    if (epoch != g_gc_id.load(std::memory_order_acquire)) continue;
    if (found.kind != Resolution::kObject || !found.class_info->is_array) return 0;
    uint64_t length =
        *reinterpret_cast<const volatile uint32_t*>(twin_address(layout, found.object) + layout.array_length_offset);
    return length << log2_element_size(found.class_info->layout_helper);
  }
}

}  // namespace

void* make_critical_copy(Resolver* resolver, const VmLayout& layout, uint64_t elements) {
  Copy copy;
  copy.elements = elements;
  copy.bytes = array_bytes(resolver, layout, elements);
  if (copy.bytes == 0) return nullptr;
  copy.given.reset(new (std::nothrow) char[copy.bytes]);
  copy.original.reset(new (std::nothrow) char[copy.bytes]);
  if (!copy.given || !copy.original) return nullptr;
  copy_bytes(copy.original.get(), reinterpret_cast<const void*>(elements), copy.bytes);
  memcpy(copy.given.get(), copy.original.get(), copy.bytes);
  void* given = copy.given.get();
  std::lock_guard lock(copies().mutex);
  copies().by_address.emplace(given, std::move(copy));
  return given;
}

uint64_t settle_critical_copy(const void* given, bool store, bool free) {
  std::unique_lock lock(copies().mutex);
  auto at = copies().by_address.find(given);
  if (at == copies().by_address.end()) return 0;
  Copy copy = std::move(at->second);
  copies().by_address.erase(at);
  lock.unlock();
  const char* now = copy.given.get();
  char* was = copy.original.get();
  for (size_t i = 0; store && i < copy.bytes;) {
    size_t from = i;
    while (i < copy.bytes && now[i] != was[i]) ++i;
    if (i != from) {
      copy_bytes(reinterpret_cast<void*>(copy.elements + from), now + from, i - from);
      memcpy(was + from, now + from, i - from);
    } else {
      ++i;
    }
  }
  uint64_t elements = copy.elements;
  if (free) return elements;
  lock.lock();
  copies().by_address.emplace(given, std::move(copy));
  return elements;
}

}  // namespace classaccess
