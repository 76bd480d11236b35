// ConstMethod's line number table: pairs of (bci delta, line delta), one byte
// each while both are small (5 and 3 bits), else 0xFF and two signed compressed ints; a 0
// byte ends it (share/code/compressedStream.hpp, CompressedLineNumberReadStream).
// Context: any; `next()` supplies the bytes and may fail.
#pragma once

#include <cstdint>

#include "agent/heap/unsigned5.h"

namespace classaccess {

enum class LineStep { kPair, kEnd, kBroken };

struct LinePair {
  int32_t bci = 0;
  int32_t line = 0;
};

// Advances *at by one pair.
template <typename Next>
inline LineStep next_line(bool excludes_zero, Next&& next, LinePair* at) {
  uint8_t byte;
  if (!next(&byte)) return LineStep::kBroken;
  if (byte == 0) return LineStep::kEnd;
  if (byte != 0xff) {
    at->bci += byte >> 3;
    at->line += byte & 7;
    return LineStep::kPair;
  }
  uint32_t bci, line;
  if (!read_unsigned5(excludes_zero, next, &bci) || !read_unsigned5(excludes_zero, next, &line)) {
    return LineStep::kBroken;
  }
  at->bci = static_cast<int32_t>(static_cast<uint32_t>(at->bci) + static_cast<uint32_t>(decode_sign(bci)));
  at->line = static_cast<int32_t>(static_cast<uint32_t>(at->line) + static_cast<uint32_t>(decode_sign(line)));
  return LineStep::kPair;
}

}  // namespace classaccess
