// Where an address goes in a table of open addressing.
// Context: any; pure.
#pragma once

#include <cstdint>

namespace classaccess {

inline uint64_t hash_address(uint64_t address) {
  uint64_t key = address * 0x9e3779b97f4a7c15ull;
  return key ^ (key >> 32);
}

}  // namespace classaccess
