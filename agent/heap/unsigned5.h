// HotSpot's compressed ints (line tables, debug info): one to five bytes, low six bits
// first, a byte below L ends the number. Two variants: JDK 17 (share/code/compressedStream.hpp,
// L = 192) and 20 and up (share/utilities/unsigned5.hpp, each byte is stored plus 1, so 0
// never occurs and L = 191).
// Context: any; `next()` supplies the bytes and may fail.
#pragma once

#include <cstdint>

namespace classaccess {

// next(uint8_t*) -> bool. False if it failed or a byte is 0 where none can be.
template <typename Next>
inline bool read_unsigned5(bool excludes_zero, Next&& next, uint32_t* value) {
  const uint32_t bias = excludes_zero ? 1 : 0;
  const uint32_t low_codes = 192 - bias;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 5; ++i) {
    uint8_t byte;
    if (!next(&byte) || byte < bias) return false;
    uint32_t code = byte - bias;
    sum += code << (6 * i);
    if (code < low_codes) break;
  }
  *value = sum;
  return true;
}

// Signed numbers carry their sign in bit 0.
inline int32_t decode_sign(uint32_t value) { return static_cast<int32_t>((value >> 1) ^ (0u - (value & 1))); }

}  // namespace classaccess
