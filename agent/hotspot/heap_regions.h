// The heap's spaces (Serial, Parallel, Epsilon) or regions (G1, Shenandoah) as the VM
// keeps them in its C heap structures; the Java heap itself is not read.
// Source of offsets: vmStructs; region type and state numbers: its constants.
// Context: create: VMInit. read_spaces: VM thread in GarbageCollectionStart/Finish, or VMInit; no
// allocation. Elsewhere the answer may be torn: tops move as threads allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/heap/vm_layout.h"
#include "agent/hotspot/vm_structs.h"

namespace classaccess {

struct HeapSpace {
  enum class Kind : uint8_t {
    kEden,
    kSurvivor,
    kOld,                 // Epsilon: its only space; Shenandoah: every region in use
    kHumongousStart,      // the object starts at bottom
    kHumongousContinues,  // no object starts here
    kFree,                // holds nothing: top is bottom
    kArchive,             // 17 G1 only: objects of the CDS archive
    kOther,               // Shenandoah: being evacuated
  };
  uint64_t bottom = 0;
  uint64_t top = 0;  // end of what is allocated
  uint64_t end = 0;
  Kind kind = Kind::kOther;
};

class HeapRegions {
 public:
  // Empty string, or why this JVM's spaces cannot be read (a missing name, ZGC).
  std::string create(const VmStructs& vm, const VmLayout& layout);

  // Writes at most `max` spaces, in the same order at each call: Serial and Parallel eden, from,
  // to, old (from and to swap their bounds); G1 and Shenandoah by region number. Returns how many.
  size_t read_spaces(HeapSpace* out, size_t max) const;

  // Spaces that read_spaces has to tell, constant for the JVM's life.
  size_t count() const;

 private:
  void read_space(uint64_t space, HeapSpace::Kind kind, HeapSpace* out) const;
  void read_region(size_t index, HeapSpace* out) const;
  HeapSpace::Kind kind_of(uint8_t state) const;

  Collector collector_ = Collector::kUnknown;
  uint64_t heap_low_ = 0;
  uint64_t region_bytes_ = 0;
  uint64_t slots_[4] = {};  // addresses of the variables that point at the spaces
  size_t slot_count_ = 0;
  uint64_t table_slot_ = 0;  // address of the pointer to the array of region pointers
  uint64_t table_length_slot_ = 0;
  uint32_t bottom_ = 0, top_ = 0, end_ = 0, state_ = 0;  // offsets in a space or region
  // G1HeapRegionType's tags; Shenandoah's states.
  int64_t eden_ = -1, survivor_ = -1, humongous_start_ = -1, humongous_continues_ = -1, free_ = -1;
  int64_t old_mask_ = 0, archive_mask_ = 0;
  int64_t pinned_humongous_start_ = -1, free_committed_ = -1, trash_ = -1, cset_ = -1, pinned_cset_ = -1;
};

}  // namespace classaccess
