// Functions of every shape that a hook may meet, in a shared library of their own.
#pragma once

#include <csetjmp>
#include <cstdint>

extern "C" {
int called_leaf();                      // 3 bytes
int called_leaf_close();                // 3 bytes, and another function behind it
int called_rip_relative();              // its first instruction is relative to rip
int called_endbr(int);                  // begins with ENDBR64
int called_call_next();                 // call to the next instruction
int called_branch_back(int);            // branches to its second byte
double called_varargs(int count, ...);  // doubles
struct CalledBig {
  long words[8];
};
CalledBig called_struct(long from);
int called_static_chain(int);  // calls a function that takes r10
int called_flags();            // all registers of its caller
long called_recursion(int depth);
bool called_is_even(unsigned n);  // with called_is_odd: tail calls
bool called_is_odd(unsigned n);
void called_throw_inner(int what), called_throw_middle(int what), called_throw_outer(int what);
void called_jump_inner(std::jmp_buf*to), called_jump_outer(std::jmp_buf*to);
void called_exit_thread();
void called_switch_stack(void (*to)(void*), void* argument);
int called_backtrace(void** to, int count);
void called_spin(uint64_t iterations);
void called_empty();
int called_by_pointer(int (*function)(int), int value);
int called_shared_tail(int);  // the next one branches behind its first instruction
int called_other_entry(int);
int called_alias(int), called_shared_name(int);
int called_ifunc(int);  // called_chosen
long double called_long_double(long double);
void* called_return_address();
}
