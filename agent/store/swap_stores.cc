#include "agent/store/swap_stores.h"

namespace classaccess {

bool is_swap(const uint8_t* bytes, uint8_t length) {
  // Intel manual, volume 2: XCHG is 86 (bytes) or 87, behind an operand size prefix and REX.
  uint8_t at = 0;
  while (at < length && (bytes[at] == 0x66 || bytes[at] == 0xf0)) ++at;
  if (at < length && (bytes[at] & 0xf0) == 0x40) ++at;
  if (at + 1 >= length || (bytes[at] & 0xfe) != 0x86) return false;
  return bytes[at + 1] >> 6 != 3;  // not between registers
}

bool swap_is_store(const std::string& symbol) {
  for (const char* swap : {"BarrierType)6", "BarrierType)7", "xchg", "exchange"}) {
    if (symbol.find(swap) != std::string::npos) return false;
  }
  return true;
}

}  // namespace classaccess
