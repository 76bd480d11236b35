#include "agent/base/safe_load.h"

#include <errno.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"

// rep movsb keeps rcx current at a fault, so resuming behind it returns the rest.
asm(R"(
  .text
  .p2align 4
  .globl classaccess_safe_copy
  .hidden classaccess_safe_copy
  .type classaccess_safe_copy,@function
classaccess_safe_copy:
  .cfi_startproc
  mov %rdx, %rcx
  .globl classaccess_safe_copy_fault
  .hidden classaccess_safe_copy_fault
classaccess_safe_copy_fault:
  rep movsb
  .globl classaccess_safe_copy_resume
  .hidden classaccess_safe_copy_resume
classaccess_safe_copy_resume:
  mov %rcx, %rax
  ret
  .cfi_endproc
  .size classaccess_safe_copy, .-classaccess_safe_copy

  .p2align 4
  .globl classaccess_safe_load64
  .hidden classaccess_safe_load64
  .type classaccess_safe_load64,@function
classaccess_safe_load64:
  .cfi_startproc
  .globl classaccess_safe_load64_fault
  .hidden classaccess_safe_load64_fault
classaccess_safe_load64_fault:
  mov (%rdi), %rax
  mov %rax, (%rsi)
  mov $1, %eax
  ret
  .cfi_endproc
  .size classaccess_safe_load64, .-classaccess_safe_load64

  .p2align 4
  .globl classaccess_safe_load32
  .hidden classaccess_safe_load32
  .type classaccess_safe_load32,@function
classaccess_safe_load32:
  .cfi_startproc
  .globl classaccess_safe_load32_fault
  .hidden classaccess_safe_load32_fault
classaccess_safe_load32_fault:
  mov (%rdi), %eax
  mov %eax, (%rsi)
  mov $1, %eax
  ret
  .globl classaccess_safe_load_failed
  .hidden classaccess_safe_load_failed
classaccess_safe_load_failed:
  xor %eax, %eax
  ret
  .cfi_endproc
  .size classaccess_safe_load32, .-classaccess_safe_load32
)");

namespace classaccess {

extern "C" {
extern const char classaccess_safe_copy_fault[];
extern const char classaccess_safe_copy_resume[];
extern const char classaccess_safe_load64_fault[];
extern const char classaccess_safe_load32_fault[];
extern const char classaccess_safe_load_failed[];
}

bool is_readable(uint64_t address) {
  constexpr long kNoSuchHow = -1;
  return raw_syscall(SYS_rt_sigprocmask, kNoSuchHow, static_cast<long>(address & ~7ull), 0, 8) != -EFAULT;
}

uint64_t safe_load_recover(uint64_t pc) {
  auto at = [](const char* label) { return reinterpret_cast<uint64_t>(label); };
  if (pc == at(classaccess_safe_copy_fault)) return at(classaccess_safe_copy_resume);
  if (pc == at(classaccess_safe_load64_fault) || pc == at(classaccess_safe_load32_fault)) {
    return at(classaccess_safe_load_failed);
  }
  return 0;
}

}  // namespace classaccess
