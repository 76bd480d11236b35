// What a trap costs without us: loads from a page that a protection key closes, and a
// SIGSEGV handler that does nothing but move the PC behind the load. The floor that
// scripts/bench compares a recorded access with, in the same run.
// Prints the median of the rounds: `empty_trap_ns N`.
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace {

constexpr int kLoadBytes = 2;  // mov (%rdi), %eax

void on_fault(int, siginfo_t*, void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += kLoadBytes;
}

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void trap_once(void* page) { asm volatile("mov (%0), %%eax" : : "D"(page) : "eax", "memory"); }

}  // namespace

int main(int argc, char** argv) {
  int traps = argc > 1 ? atoi(argv[1]) : 100000;
  int rounds = argc > 2 ? atoi(argv[2]) : 5;
  long key = syscall(SYS_pkey_alloc, 0ul, 0ul);
  if (key < 0) {
    puts("empty_trap_ns: skipped, no protection keys here");
    return 0;
  }
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  *static_cast<volatile int*>(page) = 1;
  syscall(SYS_pkey_mprotect, page, 4096ul, PROT_READ | PROT_WRITE, key);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  unsigned rights = 3u << (2 * key);
  unsigned eax, edx;
  asm volatile(".byte 0x0f,0x01,0xee" : "=a"(eax), "=d"(edx) : "c"(0));
  asm volatile(".byte 0x0f,0x01,0xef" : : "a"(eax | rights), "c"(0), "d"(0) : "memory");
  std::vector<double> per_trap;
  for (int r = 0; r < rounds; ++r) {
    double begin = now_ns();
    for (int i = 0; i < traps; ++i) trap_once(page);
    per_trap.push_back((now_ns() - begin) / traps);
  }
  std::sort(per_trap.begin(), per_trap.end());
  printf("empty_trap_ns %.0f\n", per_trap[per_trap.size() / 2]);
  return 0;
}
