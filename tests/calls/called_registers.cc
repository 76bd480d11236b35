#include "tests/calls/called_registers.h"

#include <cstddef>

extern "C" {
__attribute__((visibility("hidden"))) alignas(64) CalledRegisters classaccess_test_registers;
__attribute__((visibility("hidden"))) int classaccess_test_level = __builtin_cpu_supports("avx512bw") ? 2
                                                                   : __builtin_cpu_supports("avx2")   ? 1
                                                                                                      : 0;
}

static_assert(sizeof(RegisterFile) == 2304 && offsetof(RegisterFile, flags) == 128 &&
              offsetof(RegisterFile, vectors) == 192 && offsetof(RegisterFile, masks) == 2240);

// `at`: offset of a RegisterFile in classaccess_test_registers.
asm(R"(
  .macro test_each_gpr what, at
  \what \at+0, %rax
  \what \at+8, %rcx
  \what \at+16, %rdx
  \what \at+24, %rbx
  \what \at+40, %rbp
  \what \at+48, %rsi
  \what \at+56, %rdi
  \what \at+64, %r8
  \what \at+72, %r9
  \what \at+80, %r10
  \what \at+88, %r11
  \what \at+96, %r12
  \what \at+104, %r13
  \what \at+112, %r14
  \what \at+120, %r15
  .endm
  .macro test_load_gpr offset, register
  mov classaccess_test_registers+\offset(%rip), \register
  .endm
  .macro test_store_gpr offset, register
  mov \register, classaccess_test_registers+\offset(%rip)
  .endm

  # Flags last: the comparison of the level changes them.
  .macro test_load_all at
  cmpl $1, classaccess_test_level(%rip)
  jb 10f
  je 11f
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovdqu64 classaccess_test_registers+\at+192+64*\n(%rip), %zmm\n
  .endr
  .irp n, 0,1,2,3,4,5,6,7
  kmovq classaccess_test_registers+\at+2240+8*\n(%rip), %k\n
  .endr
  jmp 12f
10:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  movups classaccess_test_registers+\at+192+64*\n(%rip), %xmm\n
  .endr
  jmp 12f
11:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovdqu classaccess_test_registers+\at+192+64*\n(%rip), %ymm\n
  .endr
12:
  push classaccess_test_registers+\at+128(%rip)
  popf
  test_each_gpr test_load_gpr, \at
  .endm

  .macro test_store_all at
  test_each_gpr test_store_gpr, \at
  pushf
  pop classaccess_test_registers+\at+128(%rip)
  cmpl $1, classaccess_test_level(%rip)
  jb 20f
  je 21f
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovdqu64 %zmm\n, classaccess_test_registers+\at+192+64*\n(%rip)
  .endr
  .irp n, 0,1,2,3,4,5,6,7
  kmovq %k\n, classaccess_test_registers+\at+2240+8*\n(%rip)
  .endr
  jmp 22f
20:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  movups %xmm\n, classaccess_test_registers+\at+192+64*\n(%rip)
  .endr
  jmp 22f
21:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovdqu %ymm\n, classaccess_test_registers+\at+192+64*\n(%rip)
  .endr
22:
  .endm

  # given: 0, seen: 2304, returned: 4608, after: 6912
  .text
  .p2align 4
  .globl called_take_registers
  .type called_take_registers,@function
called_take_registers:
  test_store_all 2304
  test_load_all 4608
  ret
  .size called_take_registers, .-called_take_registers

  # \prepare: before the registers are loaded; \call: the instruction.
  .macro test_caller name, prepare, call:vararg
  .p2align 4
  .globl \name
  .type \name,@function
\name:
  .irp register, rbx, rbp, r12, r13, r14, r15
  push %\register
  .endr
  \prepare
  test_load_all 0
  \call
  test_store_all 6912
  cmpl $0, classaccess_test_level(%rip)
  je 30f
  vzeroupper
30:
  .irp register, r15, r14, r13, r12, rbp, rbx
  pop %\register
  .endr
  ret
  .size \name, .-\name
  .endm
  .macro test_prepare_nothing
  .endm
  .macro test_prepare_r11
  mov called_take_registers@GOTPCREL(%rip), %rax
  mov %rax, classaccess_test_registers+8*11(%rip)
  .endm
  .macro test_prepare_memory
  lea classaccess_test_pointer-8(%rip), %rax
  mov %rax, classaccess_test_registers+8*3(%rip)
  mov called_take_registers@GOTPCREL(%rip), %rax
  mov %rax, classaccess_test_pointer(%rip)
  .endm
  .local classaccess_test_pointer
  .comm classaccess_test_pointer, 8, 8

  test_caller called_direct, test_prepare_nothing, call called_take_registers@PLT
  test_caller called_through_got, test_prepare_nothing, call *called_take_registers@GOTPCREL(%rip)
  test_caller called_through_r11, test_prepare_r11, call *%r11
  test_caller called_through_memory, test_prepare_memory, call *8(%rbx)
)");

extern "C" {
CalledRegisters* called_registers() { return &classaccess_test_registers; }
int called_vector_level() { return classaccess_test_level; }
}
