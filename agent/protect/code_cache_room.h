// Free address space on both sides of the code cache, for probes: a jump from anywhere in
// it reaches 2 GB either way.
//
// Which of libjvm's reservations will be the code cache is not known when it is made, so
// each large one without an address gets room; when the VM is up the code cache's is taken
// and the rest given back.
// Context: reserve: the mmap interposer, under its lock. take: before recording.
#pragma once

#include <cstddef>
#include <cstdint>

namespace classaccess {

// Address space on both sides of code.
struct RoomAround {
  uint64_t low_begin = 0, low_end = 0;    // in front of it
  uint64_t high_begin = 0, high_end = 0;  // behind it
};

// From now on large reservations get room. Before the VM reserves anything.
void want_code_cache_room();

// Address space of `bytes` without access, with room round it; 0: none, reserve without.
uint64_t reserve_with_room(size_t bytes);

// The room round the reservation that holds `code`; empty if there is none. Gives all
// other rooms back. Each later call (another recording) gives the same.
RoomAround take_code_cache_room(uint64_t code);

}  // namespace classaccess
