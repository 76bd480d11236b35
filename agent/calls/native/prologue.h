// Whether a function's first instructions can run elsewhere, and their copy.
// Context: no signal handler; pure but for reading the code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace classaccess {

// A function as the symbol tables tell of it, at its address in this process.
struct FunctionCode {
  uint64_t entry = 0;
  uint64_t size = 0;   // 0: not known
  uint64_t limit = 0;  // where the next function begins, or the segment ends
  // Where other parts of it lie (`name.cold`), which may branch back.
  std::vector<std::pair<uint64_t, uint64_t>> parts;
};

struct Prologue {
  uint64_t patch = 0;  // where the jump goes: behind ENDBR64
  uint8_t original[32] = {};
  uint8_t moved = 0;          // bytes that run elsewhere, from `patch`
  uint32_t inner_starts = 0;  // bit i: an instruction begins at patch + i, 0 < i < kJumpBytes
  struct Item {
    uint8_t from = 0, length = 0;
    uint8_t to = 0;  // offset in the copy: set by write_copy
  };
  std::vector<Item> items;
};

// Empty string and *out filled, or why the entry cannot be patched.
std::string plan_prologue(const FunctionCode& function, Prologue* out);

// Whether the instruction that covers `at`, of a function that begins at `start`, branches to [low, high). True if it
// cannot be said.
bool branches_at(uint64_t start, uint64_t at, uint64_t low, uint64_t high);

constexpr size_t kMaxCopy = 160;
// The copy as it runs at `at`, with a jump back behind it; returns its length, 0 if something is out of reach.
size_t write_copy(Prologue* prologue, uint64_t at, uint8_t* to);

}  // namespace classaccess
