// HotSpot's own performance counters (jvmstat, -XX:+UsePerfData): the shared memory
// format that jstat reads.
// Source: share/runtime/perfMemory.hpp (PerfDataPrologue, PerfDataEntry), version 2.0.
// Context: find: VMInit. text: any thread, also at a safepoint; no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/hotspot/vm_structs.h"

namespace classaccess {

// A string counter such as "sun.gc.cause".
class PerfString {
 public:
  // False if the JVM keeps no such counter.
  bool find(const VmStructs& vm, const char* name);

  // Copies the current value, cut to `size` - 1 bytes; "" if not found.
  void text(char* to, size_t size) const;

 private:
  const char* value_ = nullptr;
  size_t length_ = 0;
};

}  // namespace classaccess
