#include "tests/calls/called_library.h"

#include <execinfo.h>
#include <pthread.h>

#include <cstdarg>

namespace {
struct Counted {
  static int alive;
  Counted() { ++alive; }
  ~Counted() { --alive; }
};
int Counted::alive = 0;
}  // namespace

extern "C" {

asm(R"(
  .text
  .p2align 4
  .globl called_leaf
  .type called_leaf,@function
called_leaf:
  mov $42, %al
  ret
  .size called_leaf, .-called_leaf
)");
asm(R"(
  .p2align 4
  .globl called_leaf_close
  .type called_leaf_close,@function
called_leaf_close:
  xor %eax, %eax
  ret
  .size called_leaf_close, .-called_leaf_close
  .type called_neighbour,@function
called_neighbour:
  mov $7, %eax
  ret
  .size called_neighbour, .-called_neighbour

  .p2align 4
  .globl called_rip_relative
  .type called_rip_relative,@function
called_rip_relative:
  mov called_word(%rip), %eax
  add $1, %eax
  ret
  .size called_rip_relative, .-called_rip_relative
  .section .rodata
called_word: .long 41
  .text

  .p2align 4
  .globl called_endbr
  .type called_endbr,@function
called_endbr:
  endbr64
  lea 1(%rdi), %eax
  ret
  .size called_endbr, .-called_endbr

# Its neighbour, one function with two entries in all but name, goes on behind its first instruction.
  .p2align 4
  .globl called_shared_tail
  .type called_shared_tail,@function
called_shared_tail:
  .cfi_startproc
  mov %edi, %eax
.Lcalled_shared:
  add $3, %eax
  nopl 0(%rax)
  ret
  .cfi_endproc
  .size called_shared_tail, .-called_shared_tail
  .p2align 4
  .globl called_other_entry
  .type called_other_entry,@function
called_other_entry:
  .cfi_startproc
  lea (%rdi,%rdi), %eax
  nopl 0(%rax)
  jmp .Lcalled_shared
  .cfi_endproc
  .size called_other_entry, .-called_other_entry

# An IFUNC; what it chooses has no symbol in a stripped library.
  .p2align 4
  .type called_chosen,@function
called_chosen:
  .cfi_startproc
  lea 9(%rdi), %eax
  nopl 0(%rax)
  ret
  .cfi_endproc
  .size called_chosen, .-called_chosen
  .p2align 4
  .type called_resolver,@function
called_resolver:
  .cfi_startproc
  lea called_chosen(%rip), %rax
  ret
  .cfi_endproc
  .size called_resolver, .-called_resolver
  .globl called_alias
  .type called_alias,@function
  .set called_alias, called_shared_name
  .p2align 4
  .globl called_shared_name
  .type called_shared_name,@function
called_shared_name:
  .cfi_startproc
  lea 2(%rdi), %eax
  nopl 0(%rax)
  ret
  .cfi_endproc
  .size called_shared_name, .-called_shared_name
  .globl called_ifunc
  .type called_ifunc,@gnu_indirect_function
  .set called_ifunc, called_resolver

  .p2align 4
  .globl called_call_next
  .type called_call_next,@function
called_call_next:
.Lcalled_call_next:
  call 1f
1:
  pop %rax
  lea .Lcalled_call_next(%rip), %rcx
  sub %rcx, %rax
  ret
  .size called_call_next, .-called_call_next

  .p2align 4
  .globl called_branch_back
  .type called_branch_back,@function
called_branch_back:
  xor %eax, %eax
2:
  add $2, %eax
  dec %edi
  jnz 2b
  ret
  .size called_branch_back, .-called_branch_back

# As GCC calls a nested function: the frame of the outer one in r10.
  .p2align 4
  .type called_chain_inner,@function
called_chain_inner:
  mov (%r10), %eax
  add %edi, %eax
  ret
  .size called_chain_inner, .-called_chain_inner
  .p2align 4
  .globl called_static_chain
  .type called_static_chain,@function
called_static_chain:
  .cfi_startproc
  push $100
  .cfi_adjust_cfa_offset 8
  mov %rsp, %r10
  call called_chain_inner
  pop %rcx
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size called_static_chain, .-called_static_chain

# 0 if the call of a function that changes nothing has changed nothing.
  .p2align 4
  .type called_nothing,@function
called_nothing:
  nop
  nop
  nop
  nop
  nop
  ret
  .size called_nothing, .-called_nothing
  .p2align 4
  .globl called_flags
  .type called_flags,@function
called_flags:
  .cfi_startproc
  mov $1, %eax
  mov $2, %ecx
  mov $3, %edx
  mov $4, %esi
  mov $5, %edi
  mov $6, %r8d
  mov $7, %r9d
  mov $8, %r10d
  mov $9, %r11d
  movq %rax, %xmm0
  movq %rcx, %xmm7
  movq %rdx, %xmm15
  stc
  call called_nothing
  jnc 9f
  cmp $1, %rax
  jne 9f
  cmp $2, %rcx
  jne 9f
  cmp $3, %rdx
  jne 9f
  cmp $4, %rsi
  jne 9f
  cmp $5, %rdi
  jne 9f
  cmp $6, %r8
  jne 9f
  cmp $7, %r9
  jne 9f
  cmp $8, %r10
  jne 9f
  cmp $9, %r11
  jne 9f
  movq %xmm0, %rax
  cmp $1, %rax
  jne 9f
  movq %xmm7, %rax
  cmp $2, %rax
  jne 9f
  movq %xmm15, %rax
  cmp $3, %rax
  jne 9f
  mov $0x7fffffff, %eax
  add $1, %eax
  call called_nothing
  jno 9f
  jns 9f
  xor %eax, %eax
  ret
9:
  mov $1, %eax
  ret
  .cfi_endproc
  .size called_flags, .-called_flags
)");

double called_varargs(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(list, double);
  va_end(list);
  return sum;
}

CalledBig called_struct(long from) {
  CalledBig out;
  for (long& word : out.words) word = from++;
  return out;
}

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) long called_recursion(int depth) {
  return depth == 0 ? 0 : 1 + called_recursion(depth - 1);
}

bool called_is_even(unsigned n) { return n == 0 ? true : called_is_odd(n - 1); }
bool called_is_odd(unsigned n) { return n == 0 ? false : called_is_even(n - 1); }

void called_throw_inner(int what) {
  if (what >= 0) throw what;
}
void called_throw_middle(int what) {
  try {
    called_throw_inner(what);
  } catch (int) {
    throw;
  }
}
void called_throw_outer(int what) {
  Counted counted;
  called_throw_middle(what);
}

void called_jump_inner(std::jmp_buf* to) { std::longjmp(*to, 1); }
void called_jump_outer(std::jmp_buf* to) {
  called_jump_inner(to);
  asm volatile("");
}

void called_exit_thread() { pthread_exit(nullptr); }

void called_switch_stack(void (*to)(void*), void* argument) {
  to(argument);
  asm volatile("");
}

int called_backtrace(void** to, int count) { return backtrace(to, count); }

void called_spin(uint64_t iterations) {
  for (uint64_t i = 0; i < iterations; ++i) asm volatile("");
}

void called_empty() { asm volatile("nop; nop; nop; nop; nop"); }

int called_by_pointer(int (*function)(int), int value) { return function(value) + 1; }

long double called_long_double(long double value) { return value * 2; }

void* called_return_address() { return __builtin_return_address(0); }
}
