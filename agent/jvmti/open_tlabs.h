// The parts of open TLABs that hold no objects: [top, end) of each, to be stepped over when a space is parsed.
// Context: no Java thread runs (VMInit, a pause); reads the thread list by safe loads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/heap/vm_layout.h"

namespace classaccess {

struct OpenTlabs {
  static constexpr size_t kMax = 256;
  struct Gap {
    uint64_t top, end;
  } gaps[kMax];
  size_t count = 0;

  // The next address to parse; `at` itself if it lies in no gap. For Resolver::walk.
  static uint64_t skip(uint64_t at, void* context);
};

// `reserve`: bytes behind a TLAB's end that belong to it.
void read_tlabs(const VmLayout& layout, uint64_t reserve, OpenTlabs* out);

}  // namespace classaccess
