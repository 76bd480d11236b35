#include "agent/x86/displace.h"

#include <cstring>

namespace classaccess {
namespace {

constexpr size_t kJumpBytes = 14;  // jmp [rip+0]; .quad

bool is_null_segment(uint8_t b) { return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e; }

bool is_prefix(uint8_t b) {
  return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 || is_null_segment(b);
}

// CS, DS, ES and SS prefixes are left out: of several segment prefixes one wins.
size_t copied_length(const Instruction& in) {
  size_t n = 1;
  bool prefixes = true;
  for (size_t i = 0; i < in.length; ++i) {
    if (prefixes && !is_prefix(in.bytes[i])) prefixes = false;
    if (!(prefixes && is_null_segment(in.bytes[i]))) ++n;
  }
  return n;
}

}  // namespace

bool can_displace(const Instruction& in) {
  if (in.execute != Execute::kDisplace && in.execute != Execute::kEmulate) return false;
  return in.segment == 0 && in.base != kRip && copied_length(in) <= 15;
}

size_t write_displaced(const Instruction& in, uint64_t next_pc, uint8_t* to) {
  if (!can_displace(in)) return 0;
  size_t n = 0;
  to[n++] = 0x65;
  bool prefixes = true;
  for (size_t i = 0; i < in.length; ++i) {
    if (prefixes && !is_prefix(in.bytes[i])) prefixes = false;
    if (!(prefixes && is_null_segment(in.bytes[i]))) to[n++] = in.bytes[i];
  }
  constexpr uint8_t kJump[] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(to + n, kJump, sizeof(kJump));
  std::memcpy(to + n + sizeof(kJump), &next_pc, sizeof(next_pc));
  static_assert(15 + kJumpBytes <= kMaxDisplaced);
  return n + kJumpBytes;
}

size_t displaced_jump_offset(const Instruction& in) { return copied_length(in); }

}  // namespace classaccess
