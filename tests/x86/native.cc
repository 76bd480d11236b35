#include "tests/x86/native.h"

#include <cpuid.h>
#include <immintrin.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "agent/x86/string_ops.h"

namespace classaccess::test {

extern "C" {
MachineState g_native_state;
uint64_t g_native_code;
uint64_t g_native_host_rsp;
alignas(64) uint8_t g_native_xsave[16384];
void classaccess_native_run();
void classaccess_native_xsave();
extern const char classaccess_native_exit[];
}

static_assert(offsetof(MachineState, rflags) == 128 && offsetof(MachineState, zmm) == 192 &&
              offsetof(MachineState, k) == 2240 && offsetof(MachineState, mxcsr) == 2304 &&
              offsetof(MachineState, x87) == 2368);

asm(R"(
  .text
  .macro load_zmm number
  vmovdqu64 g_native_state+192+64*\number(%rip), %zmm\number
  .endm
  .macro store_zmm number
  vmovdqu64 %zmm\number, g_native_state+192+64*\number(%rip)
  .endm
  .macro load_vectors
  .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  load_zmm \n
  .endr
  .irp n,0,1,2,3,4,5,6,7
  kmovq g_native_state+2240+8*\n(%rip), %k\n
  .endr
  .endm
  .macro store_vectors
  .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  store_zmm \n
  .endr
  .irp n,0,1,2,3,4,5,6,7
  kmovq %k\n, g_native_state+2240+8*\n(%rip)
  .endr
  .endm

  .globl classaccess_native_run
classaccess_native_run:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, g_native_host_rsp(%rip)
  fninit
  .irp n,0,1,2,3,4,5,6,7
  movq g_native_state+2368+32+16*\n(%rip), %mm\n
  .endr
  emms
  ldmxcsr g_native_state+2304(%rip)
  load_vectors
  push g_native_state+128(%rip)
  popfq
  mov g_native_state+0(%rip), %rax
  mov g_native_state+8(%rip), %rcx
  mov g_native_state+16(%rip), %rdx
  mov g_native_state+24(%rip), %rbx
  mov g_native_state+32(%rip), %rsp
  mov g_native_state+40(%rip), %rbp
  mov g_native_state+48(%rip), %rsi
  mov g_native_state+56(%rip), %rdi
  mov g_native_state+64(%rip), %r8
  mov g_native_state+72(%rip), %r9
  mov g_native_state+80(%rip), %r10
  mov g_native_state+88(%rip), %r11
  mov g_native_state+96(%rip), %r12
  mov g_native_state+104(%rip), %r13
  mov g_native_state+112(%rip), %r14
  mov g_native_state+120(%rip), %r15
  jmp *g_native_code(%rip)

  .globl classaccess_native_exit
classaccess_native_exit:
  mov %rax, g_native_state+0(%rip)
  mov %rcx, g_native_state+8(%rip)
  mov %rdx, g_native_state+16(%rip)
  mov %rbx, g_native_state+24(%rip)
  mov %rsp, g_native_state+32(%rip)
  mov %rbp, g_native_state+40(%rip)
  mov %rsi, g_native_state+48(%rip)
  mov %rdi, g_native_state+56(%rip)
  mov %r8, g_native_state+64(%rip)
  mov %r9, g_native_state+72(%rip)
  mov %r10, g_native_state+80(%rip)
  mov %r11, g_native_state+88(%rip)
  mov %r12, g_native_state+96(%rip)
  mov %r13, g_native_state+104(%rip)
  mov %r14, g_native_state+112(%rip)
  mov %r15, g_native_state+120(%rip)
  mov g_native_host_rsp(%rip), %rsp
  pushfq
  pop g_native_state+128(%rip)
  cld
  store_vectors
  stmxcsr g_native_state+2304(%rip)
  fxsave64 g_native_state+2368(%rip)
  fninit
  vzeroupper
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret

  .globl classaccess_native_xsave
classaccess_native_xsave:
  load_vectors
  mov $-1, %eax
  mov $-1, %edx
  xsave64 g_native_xsave(%rip)
  vzeroupper
  ret
)");

uint8_t* g_heap = nullptr;
uint8_t* g_behind = nullptr;
uint8_t* g_outside = nullptr;
uint64_t g_twin_distance = 0;

namespace {

uint8_t* g_code = nullptr;
volatile bool g_running = false;
NativeResult g_result;
alignas(64) uint8_t g_frame[16384];

// The XSAVE image's size is in the bytes the kernel reserves for software (sw_reserved).
void keep_frame(const void* fpstate) {
  uint32_t words[2];
  memcpy(words, static_cast<const uint8_t*>(fpstate) + 464, sizeof(words));
  constexpr uint32_t kMagic = 0x46505853;
  size_t bytes = words[0] == kMagic ? words[1] : 512;
  memset(g_frame, 0, sizeof(g_frame));
  memcpy(g_frame, fpstate, bytes < sizeof(g_frame) ? bytes : sizeof(g_frame));
}

void on_fault(int number, siginfo_t* info, void* context) {
  ucontext_t* frame = static_cast<ucontext_t*>(context);
  greg_t* gregs = frame->uc_mcontext.gregs;
  uint64_t pc = static_cast<uint64_t>(gregs[REG_RIP]);
  if (uint64_t resume = string_recover(pc)) {
    gregs[REG_RIP] = static_cast<greg_t>(resume);
    return;
  }
  if (!g_running) {
    signal(number, SIG_DFL);
    return;
  }
  // Trap 14 is the page fault; a #GP has no address.
  bool page_fault = number == SIGBUS || gregs[REG_TRAPNO] == 14;
  g_result.outcome = number == SIGILL    ? Outcome::kIllegal
                     : page_fault        ? Outcome::kPageFault
                     : number == SIGSEGV ? Outcome::kGeneralProtection
                                         : Outcome::kOther;
  g_result.fault_address = reinterpret_cast<uint64_t>(info->si_addr);
  g_result.fault_write = (gregs[REG_ERR] & 2) != 0;
  g_result.fault_rip = pc;
  keep_frame(frame->uc_mcontext.fpregs);
  gregs[REG_RIP] = reinterpret_cast<greg_t>(classaccess_native_exit);
}

void* map_at(uint64_t address, size_t bytes, int protection, int flags, int fd) {
  void* p = mmap(reinterpret_cast<void*>(address), bytes, protection, flags | MAP_FIXED_NOREPLACE, fd, 0);
  if (p == MAP_FAILED) {
    perror("mmap");
    abort();
  }
  return p;
}

NativeResult run(uint64_t code, MachineState* state) {
  g_native_state = *state;
  g_native_code = code;
  g_result = NativeResult{};
  g_running = true;
  classaccess_native_run();
  g_running = false;
  *state = g_native_state;
  return g_result;
}

}  // namespace

bool machine_supported() {
  constexpr unsigned long kFsgsbase = 1u << 1;  // HWCAP2_FSGSBASE
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && (getauxval(AT_HWCAP2) & kFsgsbase);
}

uint8_t* twin() { return g_heap + g_twin_distance; }

void protect(uint8_t* area, size_t first, size_t count, int protection) {
  if (mprotect(area + first * kPage, count * kPage, protection) != 0) {
    perror("mprotect");
    abort();
  }
}

void set_up_machine() {
  if (g_heap != nullptr) return;
  int fd = memfd_create("heap", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, kHeapBytes) != 0) abort();
  g_heap = static_cast<uint8_t*>(map_at(0x10000000, kHeapBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd));
  constexpr uint64_t kTwin = 0x100000000000;
  map_at(kTwin, kHeapBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  g_twin_distance = kTwin - reinterpret_cast<uint64_t>(g_heap);
  g_behind = static_cast<uint8_t*>(map_at(reinterpret_cast<uint64_t>(g_heap) + kHeapBytes, kPage,
                                          PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  g_outside =
      static_cast<uint8_t*>(map_at(0x18000000, kHeapBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  g_code = static_cast<uint8_t*>(
      map_at(0x20000000, 4 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  constexpr size_t kStack = 256 * 1024;
  stack_t stack{};
  stack.ss_sp = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigaction(number, &action, nullptr);
}

uint64_t native_exit() { return reinterpret_cast<uint64_t>(classaccess_native_exit); }
uint64_t native_code_address() { return reinterpret_cast<uint64_t>(g_code) + 64; }

NativeResult run_native(const uint8_t* code, size_t length, MachineState* state) {
  uint8_t* at = g_code + 64;
  memcpy(at, code, length);
  uint8_t jump[14] = {0xff, 0x25};
  uint64_t exit = native_exit();
  memcpy(jump + 6, &exit, 8);
  memcpy(at + length, jump, sizeof(jump));
  return run(reinterpret_cast<uint64_t>(at), state);
}

__attribute__((target("fsgsbase"))) NativeResult run_displaced(const uint8_t* code, size_t length, uint64_t gs_base,
                                                               MachineState* state) {
  memcpy(g_code + 1024, code, length);
  uint64_t before = _readgsbase_u64();
  _writegsbase_u64(gs_base);
  NativeResult result = run(reinterpret_cast<uint64_t>(g_code + 1024), state);
  _writegsbase_u64(before);
  return result;
}

const void* xsave_image(const MachineState& state) {
  memcpy(g_native_state.zmm, state.zmm, sizeof(state.zmm));
  memcpy(g_native_state.k, state.k, sizeof(state.k));
  memset(g_native_xsave, 0xcc, sizeof(g_native_xsave));
  memset(g_native_xsave + 512, 0, 64);
  classaccess_native_xsave();
  return g_native_xsave;
}

const void* last_frame() { return g_frame; }

uint64_t seed() {
  static const uint64_t value = [] {
    const char* text = getenv("CLASSACCESS_SEED");
    uint64_t s = text != nullptr ? strtoull(text, nullptr, 0) : static_cast<uint64_t>(time(nullptr));
    printf("CLASSACCESS_SEED=%lu\n", s);
    return s;
  }();
  return value;
}

void randomize(Random& random, MachineState* state) {
  memset(state, 0, sizeof(*state));
  for (uint64_t& r : state->gpr) {
    switch (random() % 6) {
      case 0: r = random() % 3; break;
      case 1: r = ~uint64_t{0} - random() % 2; break;
      case 2: r = random() & 0xffffffff; break;
      default: r = random(); break;
    }
  }
  constexpr uint64_t kStatus = 0x8d5;
  state->rflags = 0x202 | (random() & kStatus);
  for (auto& register_bytes : state->zmm) {
    for (size_t i = 0; i < 64; i += 8) {
      uint64_t v = random();
      memcpy(register_bytes + i, &v, 8);
    }
  }
  for (size_t i = 0; i < 8; ++i) {
    uint64_t v = random();
    memcpy(state->x87 + 32 + 16 * i, &v, 8);
  }
  for (uint64_t& k : state->k) k = random() & random();
  state->mxcsr = 0x1f80;
}

CpuState cpu_state(const MachineState& state) {
  CpuState out;
  memcpy(out.gpr, state.gpr, sizeof(out.gpr));
  out.rflags = state.rflags;
  out.rip = native_code_address();
  asm volatile("mov %%fs:0, %0" : "=r"(out.fs_base));  // the thread pointer is its own first word
  return out;
}

std::string hex(const uint8_t* bytes, size_t n) {
  std::string out;
  char text[4];
  for (size_t i = 0; i < n; ++i) {
    snprintf(text, sizeof(text), "%02x", bytes[i]);
    out += text;
  }
  return out;
}

std::string compare(const MachineState& expected, const MachineState& actual, bool all) {
  std::string out;
  char text[160];
  for (int i = 0; i < 16; ++i) {
    if (expected.gpr[i] == actual.gpr[i]) continue;
    snprintf(text, sizeof(text), " gpr%d %lx, got %lx;", i, expected.gpr[i], actual.gpr[i]);
    out += text;
  }
  if ((expected.rflags ^ actual.rflags) & 0xcd5) {
    snprintf(text, sizeof(text), " flags %lx, got %lx;", expected.rflags, actual.rflags);
    out += text;
  }
  if (!all) return out;
  for (int i = 0; i < 32; ++i) {
    if (memcmp(expected.zmm[i], actual.zmm[i], 64) == 0) continue;
    out += " zmm" + std::to_string(i) + " " + hex(expected.zmm[i], 64) + ", got " + hex(actual.zmm[i], 64) + ";";
  }
  for (int i = 0; i < 8; ++i) {
    if (expected.k[i] == actual.k[i]) continue;
    snprintf(text, sizeof(text), " k%d %lx, got %lx;", i, expected.k[i], actual.k[i]);
    out += text;
  }
  if (expected.mxcsr != actual.mxcsr) out += " mxcsr;";
  // Control, status and tag words, then ST0..ST7; the instruction and data pointers differ by nature.
  if (memcmp(expected.x87, actual.x87, 5) != 0 || memcmp(expected.x87 + 32, actual.x87 + 32, 128) != 0) out += " x87;";
  return out;
}

}  // namespace classaccess::test
