// The code that `classaccess run` writes into the program before it runs, and its data.
//
// One block of kBlockBytes: a page of code, then LoadingData. The code keeps all registers,
// opens the library, calls its classaccess_injected(control) and jumps to the program's
// entry. When that fails it stops at an int3, `failed` in the data set.
#pragma once

#include <cstdint>

namespace classaccess {

constexpr uint64_t kBlockBytes = 64 << 10;
constexpr uint64_t kLoadingDataOffset = 4096;

struct LoadingData {
  uint64_t dlopen = 0, dlsym = 0, dlerror = 0;  // addresses in the program
  uint64_t entry = 0;                           // the program's entry address
  uint64_t failed = 0;                          // 1: dlopen or dlsym, `error`; 2: classaccess_injected
  uint64_t error = 0;                           // address of dlerror's text
  char library[4096] = {};
  char function[32] = "classaccess_injected";
  char control[256] = {};  // path of the control file
};

// The code's bytes.
const void* loading_code();
uint64_t loading_code_bytes();

}  // namespace classaccess
