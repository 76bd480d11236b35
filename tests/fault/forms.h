// Real instructions that touch an object, each with the accesses it must be seen to make.
#pragma once

#include <cstdint>
#include <vector>

#include "classaccess/record.h"

namespace classaccess::test {

// In and out of a form. The offsets are used by the assembly in forms.cc.
struct alignas(64) Machine {
  uint64_t rax, rcx, rdx, rbx, rsi, rdi, r8;
  uint64_t flags;  // out
  uint64_t k1;
  uint64_t unused[7];
  uint8_t zmm0[64];
  uint8_t zmm1[64];
};

enum class How : uint8_t { kEmulated, kDisplaced, kStepped };

// Relative to rdi, or (source) to rsi.
struct Expected {
  int64_t offset;
  uint32_t size;
  Op op;
  bool source = false;
};

struct Form {
  const char* name;
  void (*run)(Machine*);
  How how;
  std::vector<Expected> accesses;
  bool needs_avx512 = false;
};

// rdi: 64 bytes into an object of 1024 or more, rsi: the same in another one; both 64-byte
// aligned. r8: 256 bytes outside the heap. rbx: 3. rcx: 100.
const std::vector<Form>& forms();
bool has_avx512();

}  // namespace classaccess::test
