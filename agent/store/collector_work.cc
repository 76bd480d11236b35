#include "agent/store/collector_work.h"

#include <string_view>

namespace classaccess {
namespace {

// Classes, and functions without one, of JDK 17 to 25.
constexpr std::string_view kPrefixes[] = {
    "Shenandoah",  // barriers, evacuation, queues
    "G1RemSet",
    "G1ConcurrentRefine",
    "G1DirtyCardQueueSet",
    "G1BarrierSet",
    "G1RefineBufferedCards",
    "G1BlockOffsetTable",  // refinement looks for the first object of a card
    "G1HeapRegion::oops_on_memregion",
    "HeapRegion::oops_on_memregion",
    "OopOopIterate",  // its template arguments are a collector's closure
    "ZBarrier",
    "ZRelocate",
    "ZRemembered",
    "ZMark",
    "ZHeap",
    "ZStoreBarrier",
    "ZUncolored",
    "FreezeBase",
    "ThawBase",
    "Freeze",
    "Thaw",
    "os::pretouch",  // -XX:+AlwaysPreTouch, of a heap that grows
    "os::pd_pretouch",
    "PretouchTask",
    "freeze_",
    "thaw_",
    "freeze",
    "thaw",
    "recurse_freeze",
    "recurse_thaw",
    "StackChunkFrameStream",
    "RelativizeDerivedOopClosure",
    "stackChunkOopDesc",
    "InstanceStackChunkKlass",
    "StackChunkAllocator",
    "jdk_internal_vm_StackChunk",
    "BarrierSetStackChunk",
    "G1BarrierSetStackChunk",
};

// The access itself with the barrier's code around it.
constexpr std::string_view kAccessBarrier = "BarrierSet::AccessBarrier";

}  // namespace

bool is_collector_work(const std::string& symbol) {
  // "oopDesc* Shenandoah...::f<...>(...)": without return type, template arguments, parameters.
  std::string_view name(symbol);
  name = name.substr(0, name.find_first_of("<("));
  size_t space = name.find_last_of(' ');
  if (space != std::string_view::npos) name.remove_prefix(space + 1);
  if (name.size() >= kAccessBarrier.size() && name.substr(name.size() - kAccessBarrier.size()) == kAccessBarrier) {
    return false;
  }
  for (std::string_view prefix : kPrefixes) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

}  // namespace classaccess
