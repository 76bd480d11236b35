// The check of the verifying build: at the start of each pause, before anything moves, every space is parsed from
// its bottom, object by object, by the sizes that the Klasses give, over the open TLABs; every claim of the resolver
// since the last pause must lie in exactly the object that it named, of the class that it named. Marks, registers,
// class table and hints, on which the resolver rests, are not used.
// Exact for Serial, Parallel and G1. Other collectors: nothing is checked.
//
// A claim is `verified`, or a `disagreement`, or `unverified` where the parse cannot get (what lies behind a block
// that a thread got but has not initialised; claims made after the last pause).
// Context: the VM thread inside a pause; create at VMInit; finish at VMDeath.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "agent/heap/claims.h"
#include "agent/heap/class_table.h"
#include "agent/heap/vm_layout.h"
#include "agent/hotspot/heap_regions.h"

namespace classaccess {

class HeapVerify {
 public:
  // False if there is no room for the claims. `tlab_reserve`: bytes behind a TLAB's end that belong to it.
  bool create(const VmLayout* layout, const ClassTable* classes, uint64_t tlab_reserve);
  void check(const HeapSpace* spaces, size_t count);

 private:
  struct KlassShape {
    int32_t layout_helper = 0;
    uint64_t name = 0;  // address of the Symbol's first byte
    uint16_t name_length = 0;
    bool is_mirror = false, is_stack_chunk = false;
    uint32_t same_class_id = 0;  // the last class id whose name was compared and is the same
  };

  KlassShape* shape(uint64_t klass);
  uint64_t size_of(const KlassShape& shape, uint64_t object) const;
  bool is_class(KlassShape* shape, uint32_t class_id) const;
  bool class_agrees(KlassShape* shape, uint64_t object, uint32_t class_id);
  void check_object(uint64_t object, uint64_t size, KlassShape* shape);
  void count_unverified(uint64_t from, uint64_t to);
  void say(uint64_t address, uint64_t object, const KlassShape& shape, const Claims::Claim& claim);

  const VmLayout* layout_ = nullptr;
  const ClassTable* classes_ = nullptr;
  uint64_t tlab_reserve_ = 0;
  int said_ = 0;
  std::unordered_map<uint64_t, KlassShape> shapes_;  // of this pause: a Klass address may be reused
};

extern HeapVerify g_heap_verify;

}  // namespace classaccess
