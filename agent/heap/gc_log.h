// The collections: rows of the `gc` table. Written by the VM thread in
// GarbageCollectionStart/Finish, read by the writer. A row's index is the gc_id of
// records made after it started.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"

namespace classaccess {

struct GcInfo {
  std::atomic<bool> ready{false};  // started
  uint64_t start_ns = 0;           // CLOCK_MONOTONIC
  std::atomic<uint64_t> end_ns{0};
  char cause[64] = {};  // "" if unknown
};

using GcLog = AppendTable<GcInfo>;  // claim() in GarbageCollectionStart

}  // namespace classaccess
