// Memory for stubs within reach of a jump from a library. Mapped twice: written here, run there.
// Never given back: a thread may be inside.
// Context: no signal handler, one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace classaccess {

struct StubPlace {
  uint64_t at = 0;  // where it runs; 0: there is none
  uint8_t* write = nullptr;
};

// `bytes` (at most 4096), 16-aligned, within 2 GB of [low, high).
StubPlace take_stub(uint64_t low, uint64_t high, size_t bytes);

}  // namespace classaccess
