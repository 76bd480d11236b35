#include "agent/hotspot/heap_regions.h"

#include <cstring>

#include "agent/hotspot/layout_probe.h"
#include "agent/hotspot/lookup.h"

namespace classaccess {
namespace {

template <typename T>
T read(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

}  // namespace

std::string HeapRegions::create(const VmStructs& vm, const VmLayout& layout) {
  collector_ = layout.collector;
  heap_low_ = layout.heap_low;
  slot_count_ = 0;
  Lookup find(vm);
  uint64_t heap = 0;
  if (uint64_t slot = find.address({{"Universe", "_collectedHeap"}})) heap = read<uint64_t>(slot);

  switch (collector_) {
    case Collector::kSerial: {
      uint32_t young = find.offset({{"SerialHeap", "_young_gen"}, {"GenCollectedHeap", "_young_gen"}});
      uint32_t old = find.offset({{"SerialHeap", "_old_gen"}, {"GenCollectedHeap", "_old_gen"}});
      uint32_t eden = find.offset({{"DefNewGeneration", "_eden_space"}});
      uint32_t from = find.offset({{"DefNewGeneration", "_from_space"}});
      uint32_t to = find.offset({{"DefNewGeneration", "_to_space"}});
      uint32_t tenured = find.offset({{"TenuredGeneration", "_the_space"}});
      if (find.result().empty()) {
        uint64_t young_gen = read<uint64_t>(heap + young);
        for (uint32_t space : {eden, from, to}) slots_[slot_count_++] = young_gen + space;
        slots_[slot_count_++] = read<uint64_t>(heap + old) + tenured;
      }
      break;
    }
    case Collector::kParallel: {
      uint64_t young = find.address({{"ParallelScavengeHeap", "_young_gen"}});
      uint64_t old = find.address({{"ParallelScavengeHeap", "_old_gen"}});
      uint32_t eden = find.offset({{"PSYoungGen", "_eden_space"}});
      uint32_t from = find.offset({{"PSYoungGen", "_from_space"}});
      uint32_t to = find.offset({{"PSYoungGen", "_to_space"}});
      uint32_t object_space = find.offset({{"PSOldGen", "_object_space"}});
      bottom_ = find.offset({{"MutableSpace", "_bottom"}});
      top_ = find.offset({{"MutableSpace", "_top"}});
      end_ = find.offset({{"MutableSpace", "_end"}});
      if (find.result().empty()) {
        uint64_t young_gen = read<uint64_t>(young);
        for (uint32_t space : {eden, from, to}) slots_[slot_count_++] = young_gen + space;
        slots_[slot_count_++] = read<uint64_t>(old) + object_space;
      }
      break;
    }
    case Collector::kEpsilon: slots_[slot_count_++] = heap + find.offset({{"EpsilonHeap", "_space"}}); break;
    case Collector::kG1: {
      uint64_t table = heap + find.offset({{"G1CollectedHeap", "_hrm"}}) +
                       find.offset({{"G1HeapRegionManager", "_regions"}, {"HeapRegionManager", "_regions"}});
      table_slot_ = table + find.offset({{"G1HeapRegionTable", "_base"}});
      table_length_slot_ = table + find.offset({{"G1HeapRegionTable", "_length"}});
      bottom_ = find.offset({{"G1HeapRegion", "_bottom"}, {"HeapRegion", "_bottom"}});
      top_ = find.offset({{"G1HeapRegion", "_top"}, {"HeapRegion", "_top"}});
      end_ = find.offset({{"G1HeapRegion", "_end"}, {"HeapRegion", "_end"}});
      state_ = find.offset({{"G1HeapRegion", "_type"}, {"HeapRegion", "_type"}}) +
               find.offset({{"G1HeapRegionType", "_tag"}, {"HeapRegionType", "_tag"}});
      free_ = find.constant({"G1HeapRegionType::FreeTag", "HeapRegionType::FreeTag"});
      eden_ = find.constant({"G1HeapRegionType::EdenTag", "HeapRegionType::EdenTag"});
      survivor_ = find.constant({"G1HeapRegionType::SurvTag", "HeapRegionType::SurvTag"});
      humongous_start_ = find.constant({"G1HeapRegionType::StartsHumongousTag", "HeapRegionType::StartsHumongousTag"});
      humongous_continues_ =
          find.constant({"G1HeapRegionType::ContinuesHumongousTag", "HeapRegionType::ContinuesHumongousTag"});
      old_mask_ = find.constant({"G1HeapRegionType::OldMask", "HeapRegionType::OldMask"});
      archive_mask_ = vm.constant("HeapRegionType::ArchiveMask").value_or(0);
      if (uint64_t bytes = find.address({{"G1HeapRegion", "GrainBytes"}, {"HeapRegion", "GrainBytes"}})) {
        region_bytes_ = read<uint64_t>(bytes);
      }
      break;
    }
    case Collector::kShenandoah:
      table_slot_ = heap + find.offset({{"ShenandoahHeap", "_regions"}});
      table_length_slot_ = heap + find.offset({{"ShenandoahHeap", "_num_regions"}});
      bottom_ = find.offset({{"ShenandoahHeapRegion", "_bottom"}});
      top_ = find.offset({{"ShenandoahHeapRegion", "_top"}});
      end_ = find.offset({{"ShenandoahHeapRegion", "_end"}});
      state_ = find.offset({{"ShenandoahHeapRegion", "_state"}});
      free_ = find.constant({"ShenandoahHeapRegion::_empty_uncommitted"});
      free_committed_ = find.constant({"ShenandoahHeapRegion::_empty_committed"});
      trash_ = find.constant({"ShenandoahHeapRegion::_trash"});
      humongous_start_ = find.constant({"ShenandoahHeapRegion::_humongous_start"});
      pinned_humongous_start_ = find.constant({"ShenandoahHeapRegion::_pinned_humongous_start"});
      humongous_continues_ = find.constant({"ShenandoahHeapRegion::_humongous_cont"});
      cset_ = find.constant({"ShenandoahHeapRegion::_cset"});
      pinned_cset_ = find.constant({"ShenandoahHeapRegion::_pinned_cset"});
      if (uint64_t bytes = find.address({{"ShenandoahHeapRegion", "RegionSizeBytes"}})) {
        region_bytes_ = read<uint64_t>(bytes);
      }
      break;
    case Collector::kZ:
    case Collector::kUnknown: return std::string(collector_name(collector_)) + " is not supported";
  }
  if (collector_ == Collector::kSerial || collector_ == Collector::kEpsilon) {
    bottom_ = find.offset({{"ContiguousSpace", "_bottom"}, {"Space", "_bottom"}});
    top_ = find.offset({{"ContiguousSpace", "_top"}});
    end_ = find.offset({{"ContiguousSpace", "_end"}, {"Space", "_end"}});
  }
  if (std::string reason = find.result(); !reason.empty()) return reason;
  if (heap == 0 || count() == 0) return "this JVM has no heap yet (Universe::_collectedHeap is null)";
  return "";
}

size_t HeapRegions::count() const {
  return table_length_slot_ != 0 ? static_cast<size_t>(read<uint64_t>(table_length_slot_)) : slot_count_;
}

size_t HeapRegions::read_spaces(HeapSpace* out, size_t max) const {
  size_t all = count();
  size_t n = all < max ? all : max;
  for (size_t i = 0; i < n; ++i) {
    if (table_slot_ != 0) {
      read_region(i, &out[i]);
    } else {
      HeapSpace::Kind kind = HeapSpace::Kind::kOld;
      if (slot_count_ > 1 && i < 3) kind = i == 0 ? HeapSpace::Kind::kEden : HeapSpace::Kind::kSurvivor;
      read_space(read<uint64_t>(slots_[i]), kind, &out[i]);
    }
  }
  return n;
}

void HeapRegions::read_space(uint64_t space, HeapSpace::Kind kind, HeapSpace* out) const {
  out->bottom = read<uint64_t>(space + bottom_);
  out->top = read<uint64_t>(space + top_);
  out->end = read<uint64_t>(space + end_);
  out->kind = kind;
}

void HeapRegions::read_region(size_t index, HeapSpace* out) const {
  uint64_t region = read<uint64_t>(read<uint64_t>(table_slot_) + 8 * index);
  if (region == 0) {  // never committed
    out->bottom = out->top = heap_low_ + index * region_bytes_;
    out->end = out->bottom + region_bytes_;
    out->kind = HeapSpace::Kind::kFree;
    return;
  }
  read_space(region, kind_of(read<uint8_t>(region + state_)), out);
  if (out->kind == HeapSpace::Kind::kFree) out->top = out->bottom;
}

HeapSpace::Kind HeapRegions::kind_of(uint8_t state) const {
  using Kind = HeapSpace::Kind;
  if (state == free_ || state == free_committed_ || state == trash_) return Kind::kFree;
  if (state == humongous_start_ || state == pinned_humongous_start_) return Kind::kHumongousStart;
  if (state == humongous_continues_) return Kind::kHumongousContinues;
  if (collector_ == Collector::kShenandoah) return state == cset_ || state == pinned_cset_ ? Kind::kOther : Kind::kOld;
  if (state == eden_) return Kind::kEden;
  if (state == survivor_) return Kind::kSurvivor;
  if ((state & archive_mask_) != 0) return Kind::kArchive;
  return (state & old_mask_) != 0 ? Kind::kOld : Kind::kOther;
}

}  // namespace classaccess
