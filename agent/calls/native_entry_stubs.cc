// What runs between a hooked function and its caller, in assembler: see native_hooks.h.
#include <cstdint>

#include "agent/calls/native_hooks.h"

extern "C" {
extern const char classaccess_return_trampolines[], classaccess_return_trampolines_end[];
void classaccess_native_entry();
}

// CFA rules. At `call *-16(%rsp)` and behind it rsp is that of the caller before it pushes its next
// argument: slot + 8. libgcc tells frames apart by the CFA of the frame inside, and would take the
// trampoline's frame for its caller's if both were slot + 8. So the trampoline's CFA lies 4 above that, and its
// caller's rsp is said by an expression. The return address is at (slot ^ 2^46).
//   DW_CFA_expression r16: const1u 12; minus; const8u 2^46; xor
//   DW_CFA_val_expression r7: const1u 4; minus
asm(R"(
  # What a callee may change, but for vector registers, and the flags.
  .macro classaccess_push_all
  .irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
  push %\register
  .cfi_adjust_cfa_offset 8
  .endr
  lahf
  seto %al
  push %rax
  .cfi_adjust_cfa_offset 8
  .endm
  .macro classaccess_pop_all
  pop %rax
  .cfi_adjust_cfa_offset -8
  add $127, %al
  sahf
  .irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
  pop %\register
  .cfi_adjust_cfa_offset -8
  .endr
  .endm

  .text
  .p2align 4
  .globl classaccess_return_trampolines
  .hidden classaccess_return_trampolines
  .type classaccess_return_trampolines,@function
classaccess_return_trampolines:
  .cfi_startproc
  .cfi_personality 0x1b, classaccess_call_personality
  .cfi_def_cfa rsp, 4
  .cfi_escape 0x10, 16, 13, 0x08, 12, 0x1c, 0x0e, 0, 0, 0, 0, 0, 0x40, 0, 0, 0x27
  .cfi_escape 0x16, 7, 3, 0x08, 4, 0x1c
  .rept 4096
  call *-16(%rsp)
  .byte 0xe9
  .long classaccess_native_exit - . - 4
  .p2align 4, 0xcc
  .endr
  .cfi_endproc
  .size classaccess_return_trampolines, .-classaccess_return_trampolines
  .globl classaccess_return_trampolines_end
  .hidden classaccess_return_trampolines_end
classaccess_return_trampolines_end:

  .p2align 4
  .type classaccess_native_exit,@function
classaccess_native_exit:
  .cfi_startproc
  .cfi_def_cfa rsp, 0
  .cfi_escape 0x10, 16, 13, 0x08, 8, 0x1c, 0x0e, 0, 0, 0, 0, 0, 0x40, 0, 0, 0x27
  lea -8(%rsp), %rsp
  .cfi_adjust_cfa_offset 8
  classaccess_push_all
  lea 80(%rsp), %rdi
  cld
  call classaccess_native_left
  mov %rax, 80(%rsp)
  classaccess_pop_all
  ret
  .cfi_endproc
  .size classaccess_native_exit, .-classaccess_native_exit

  .p2align 4
  .globl classaccess_native_entry
  .hidden classaccess_native_entry
  .type classaccess_native_entry,@function
classaccess_native_entry:
  .cfi_startproc
  .cfi_def_cfa rsp, 24
  classaccess_push_all
  lea -48(%rsp), %rdi
  cld
  call classaccess_native_entered
  test %eax, %eax
  jnz 2f
1:
  classaccess_pop_all
  ret
  .cfi_def_cfa_offset 104
2:
  .irp register, rbx, rbp, r12, r13, r14, r15
  push %\register
  .cfi_adjust_cfa_offset 8
  .endr
  mov %rsp, %rdi
  mov %rsp, %rbx
  .cfi_def_cfa_register rbx
  # The decoder may use vector registers (no wider ones) and wants an aligned stack.
  lea -256(%rsp), %rsp
  and $-16, %rsp
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  movups %xmm\n, 16*\n(%rsp)
  .endr
  call classaccess_native_entered_slowly
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  movups 16*\n(%rsp), %xmm\n
  .endr
  mov %rbx, %rsp
  .cfi_def_cfa_register rsp
  mov 40(%rsp), %rbx
  lea 48(%rsp), %rsp
  .cfi_adjust_cfa_offset -48
  jmp 1b
  .cfi_endproc
  .size classaccess_native_entry, .-classaccess_native_entry
)");

namespace classaccess {

constexpr uint32_t kTrampolines = 4096, kTrampolineBytes = 16;

bool is_return_trampoline(uint64_t address) {
  return address - reinterpret_cast<uint64_t>(classaccess_return_trampolines) < kTrampolines * kTrampolineBytes;
}

uint64_t return_trampoline(uint32_t hook) {
  return reinterpret_cast<uint64_t>(classaccess_return_trampolines) + hook % kTrampolines * kTrampolineBytes;
}

uint64_t native_entry_address() { return reinterpret_cast<uint64_t>(classaccess_native_entry); }

}  // namespace classaccess
