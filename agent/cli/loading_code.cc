#include "agent/cli/loading_code.h"

#include <cstddef>

namespace classaccess {

static_assert(offsetof(LoadingData, dlopen) == 0 && offsetof(LoadingData, dlsym) == 8 &&
              offsetof(LoadingData, dlerror) == 16 && offsetof(LoadingData, entry) == 24 &&
              offsetof(LoadingData, failed) == 32 && offsetof(LoadingData, error) == 40 &&
              offsetof(LoadingData, library) == 48 && offsetof(LoadingData, function) == 4144 &&
              offsetof(LoadingData, control) == 4176);

// At the entry rdx and the stack pointer mean something (psABI 3.4.1); everything is kept.
asm(R"(
  .pushsection .rodata
  .globl classaccess_loading_code
  .hidden classaccess_loading_code
  .globl classaccess_loading_code_end
  .hidden classaccess_loading_code_end
  .p2align 4
classaccess_loading_code:
  pushfq
  push %rax
  push %rbx
  push %rcx
  push %rdx
  push %rsi
  push %rdi
  push %rbp
  push %r8
  push %r9
  push %r10
  push %r11
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, %rbp
  and $-16, %rsp
  lea classaccess_loading_code+4096(%rip), %rbx
  lea 48(%rbx), %rdi
  mov $0x1002, %esi
  call *0(%rbx)
  test %rax, %rax
  jz 1f
  mov %rax, %rdi
  lea 4144(%rbx), %rsi
  call *8(%rbx)
  test %rax, %rax
  jz 1f
  lea 4176(%rbx), %rdi
  call *%rax
  test %eax, %eax
  jnz 2f
  mov %rbp, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rbp
  pop %rdi
  pop %rsi
  pop %rdx
  pop %rcx
  pop %rbx
  pop %rax
  popfq
  jmp *classaccess_loading_code+4096+24(%rip)
1:
  call *16(%rbx)
  mov %rax, 40(%rbx)
  movq $1, 32(%rbx)
  int3
2:
  movq $2, 32(%rbx)
  int3
classaccess_loading_code_end:
  .popsection
)");
extern "C" const char classaccess_loading_code[];
extern "C" const char classaccess_loading_code_end[];

const void* loading_code() { return classaccess_loading_code; }
uint64_t loading_code_bytes() { return static_cast<uint64_t>(classaccess_loading_code_end - classaccess_loading_code); }

}  // namespace classaccess
