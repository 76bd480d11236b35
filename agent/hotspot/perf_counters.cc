#include "agent/hotspot/perf_counters.h"

#include <string.h>

namespace classaccess {
namespace {

constexpr uint32_t kMagic = 0xc0c0feca;                                  // as read on a little-endian machine
constexpr size_t kEntryOffset = 24, kEntryCount = 28;                    // PerfDataPrologue
constexpr size_t kLength = 0, kName = 4, kVectorLength = 8, kData = 16;  // PerfDataEntry

uint32_t u32(const char* at) {
  uint32_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

bool PerfString::find(const VmStructs& vm, const char* name) {
  auto start = vm.address("PerfMemory", "_start");
  auto end = vm.address("PerfMemory", "_end");
  if (!start || !end) return false;
  const char* low = *reinterpret_cast<const char* const*>(*start);
  const char* high = *reinterpret_cast<const char* const*>(*end);
  if (low == nullptr || high < low + 32 || u32(low) != kMagic) return false;
  const char* entry = low + u32(low + kEntryOffset);
  for (uint32_t i = u32(low + kEntryCount); i > 0 && entry + 20 <= high; --i) {
    uint32_t length = u32(entry + kLength);
    if (length == 0 || entry + length > high) return false;
    if (strcmp(entry + u32(entry + kName), name) == 0) {
      value_ = entry + u32(entry + kData);
      length_ = u32(entry + kVectorLength);
      return length_ != 0;
    }
    entry += length;
  }
  return false;
}

void PerfString::text(char* to, size_t size) const {
  size_t n = length_ < size - 1 ? length_ : size - 1;
  if (value_ != nullptr) memcpy(to, value_, n);
  to[value_ != nullptr ? n : 0] = '\0';
}

}  // namespace classaccess
