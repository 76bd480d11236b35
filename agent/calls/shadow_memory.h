// Where the return address lies that a hooked call has replaced: a fixed distance from the
// stack slot it was in, one word for one word.
//
// So it is found from the slot alone: by the return trampoline, whatever became of the frames
// in between (longjmp, a thrown exception, another stack), and by every unwinder, since the
// trampoline's CFI says where it is (native_entry.cc). It is mapped as stacks are met.
// Context: signal handler and any thread.
#pragma once

#include <cstdint>

namespace classaccess {

// User addresses have 47 bits: stacks at the top of them have their image in the middle, where
// nothing is mapped.
constexpr uint64_t kShadowBit = uint64_t{1} << 46;
constexpr uint64_t kShadowChunk = 1 << 20;

inline uint64_t* shadow_of(uint64_t slot) { return reinterpret_cast<uint64_t*>(slot ^ kShadowBit); }

// The chunk that holds `slot` has a shadow from now on. False: something else is mapped there.
bool map_shadow(uint64_t slot);

}  // namespace classaccess
