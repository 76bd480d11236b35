// The operations behind emulate.h, each run by one instruction of the CPU, so results
// and flags (also those the manual calls undefined) are its own.
// Context: signal handler. `bytes` is 1, 2, 4 or 8. `flags` is an RFLAGS image of which
// only the status flags are read and written.
#pragma once

#include <cstdint>

namespace classaccess::real {

constexpr unsigned kCmp = 7;

enum class Unary : uint8_t { kNot, kNeg, kInc, kDec };

// Single accesses of that size; loads are zero-extended.
uint64_t load(const void* memory, unsigned bytes);
void store(void* memory, uint64_t value, unsigned bytes);

// kind: 0 add, 1 or, 2 adc, 3 sbb, 4 and, 5 sub, 6 xor, 7 cmp.
uint64_t alu(unsigned kind, uint64_t destination, uint64_t source, unsigned bytes, uint64_t* flags);
void alu_memory(unsigned kind, void* memory, uint64_t source, unsigned bytes, bool lock, uint64_t* flags);
void test(uint64_t a, uint64_t b, unsigned bytes, uint64_t* flags);
void unary_memory(Unary kind, void* memory, unsigned bytes, bool lock, uint64_t* flags);

// Return what was in memory.
uint64_t exchange(void* memory, uint64_t value, unsigned bytes);
uint64_t exchange_add(void* memory, uint64_t value, unsigned bytes, bool lock, uint64_t* flags);

// *rax is the whole register, before and after. True if exchanged.
bool compare_exchange(void* memory, uint64_t* rax, uint64_t wanted, unsigned bytes, bool lock, uint64_t* flags);
// CMPXCHG8B (bytes 8) and CMPXCHG16B (16); whole registers.
bool compare_exchange_pair(void* memory, unsigned bytes, uint64_t* rax, uint64_t* rdx, uint64_t rbx, uint64_t rcx,
                           bool lock, uint64_t* flags);

// Jcc, SETcc, CMOVcc condition codes 0..15.
bool condition_holds(unsigned code, uint64_t flags);

}  // namespace classaccess::real
