// Calls with a known value in every register, and what the function and its caller found there.
#pragma once

#include <cstdint>

extern "C" {

struct RegisterFile {
  uint64_t gpr[16];  // rax, rcx, rdx, rbx, (rsp: not used), rbp, rsi, rdi, r8 to r15
  uint64_t flags;
  uint64_t unused[7];
  uint8_t vectors[32][64];  // xmm, the low 32 bytes of ymm, or zmm: by g_vector_level
  uint64_t masks[8];        // k0 to k7
};

// `given`: at the call; `seen`: in the function; `returned`: set by the function; `after`: behind the call.
struct CalledRegisters {
  RegisterFile given, seen, returned, after;
};
CalledRegisters* called_registers();
// 0: xmm0 to 15; 1: ymm0 to 15; 2: zmm0 to 31 and k0 to 7 (AVX-512BW).
int called_vector_level();

// The function, and one function for each way of calling it.
void called_take_registers();
void called_direct();          // call rel32
void called_through_got();     // call [rip + d]
void called_through_r11();     // call r11: given.gpr[11] is set by it
void called_through_memory();  // call [rbx + 8]: given.gpr[3] is set by it
}
