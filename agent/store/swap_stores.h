// Which XCHG instructions of libjvm are stores: it writes a volatile field (Unsafe's putXVolatile, as the interpreter
// and reflection call it) by a swap whose old value nobody looks at. The program stored, and did not load. Context:
// writer thread.
#pragma once

#include <cstdint>
#include <string>

namespace classaccess {

// XCHG of a register with memory, by its bytes.
bool is_swap(const uint8_t* bytes, uint8_t length);

// `symbol`: the function of libjvm that a swap is in, demangled as NativeSymbols gives it, empty if unknown. HotSpot 17
// to 25 gives Java code no native function that returns what it swapped out, but the accesses of BarrierType 6 and 7
// (ATOMIC_XCHG, ATOMIC_XCHG_AT of share/oops/accessBackend.hpp) are meant to.
bool swap_is_store(const std::string& symbol);

}  // namespace classaccess
