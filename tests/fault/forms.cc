#include "tests/fault/forms.h"

#include <cstddef>

namespace classaccess::test {
namespace {

static_assert(offsetof(Machine, flags) == 56 && offsetof(Machine, k1) == 64 && offsetof(Machine, zmm0) == 128);

#define LOAD_STATE                                                                            \
  "mov 0(%%r15), %%rax\n mov 8(%%r15), %%rcx\n mov 16(%%r15), %%rdx\n mov 24(%%r15), %%rbx\n" \
  "mov 32(%%r15), %%rsi\n mov 40(%%r15), %%rdi\n mov 48(%%r15), %%r8\n"
#define STORE_STATE                                                                           \
  "pushfq\n popq 56(%%r15)\n cld\n"                                                           \
  "mov %%rax, 0(%%r15)\n mov %%rcx, 8(%%r15)\n mov %%rdx, 16(%%r15)\n mov %%rbx, 24(%%r15)\n" \
  "mov %%rsi, 32(%%r15)\n mov %%rdi, 40(%%r15)\n mov %%r8, 48(%%r15)\n"
#define CLOBBERS "rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r15", "memory", "cc", "xmm0", "xmm1"

// Integer and SSE state; flags start cleared but for ZF and PF.
#define FORM(how, text, ...)                                                                                \
  Form {                                                                                                    \
    text,                                                                                                   \
        [](Machine* m) {                                                                                    \
          asm volatile("mov %0, %%r15\n movups 128(%%r15), %%xmm0\n movups 192(%%r15), %%xmm1\n" LOAD_STATE \
                       "cmp %%r15, %%r15\n" text "\n" STORE_STATE                                           \
                       "movups %%xmm0, 128(%%r15)\n movups %%xmm1, 192(%%r15)\n"                            \
                       :                                                                                    \
                       : "r"(m)                                                                             \
                       : CLOBBERS);                                                                         \
        },                                                                                                  \
        how, {                                                                                              \
      __VA_ARGS__                                                                                           \
    }                                                                                                       \
  }

#define FORM512(how, text, ...)                                                                   \
  Form {                                                                                          \
    text,                                                                                         \
        [](Machine* m) {                                                                          \
          asm volatile(                                                                           \
              "mov %0, %%r15\n vmovups 128(%%r15), %%zmm0\n vmovups 192(%%r15), %%zmm1\n"         \
              "kmovq 64(%%r15), %%k1\n" LOAD_STATE "cmp %%r15, %%r15\n" text "\n" STORE_STATE     \
              "vmovups %%zmm0, 128(%%r15)\n vmovups %%zmm1, 192(%%r15)\n kmovq %%k1, 64(%%r15)\n" \
              "vzeroupper\n"                                                                      \
              :                                                                                   \
              : "r"(m)                                                                            \
              : CLOBBERS);                                                                        \
        },                                                                                        \
        how, {__VA_ARGS__}, true                                                                  \
  }

constexpr auto kEm = How::kEmulated;
constexpr auto kDi = How::kDisplaced;
constexpr auto kSt = How::kStepped;
constexpr Op kL = Op::kLoad, kS = Op::kStore, kU = Op::kRmw;

std::vector<Form> make_forms() {
  using E = Expected;
  return {
      FORM(kEm, "movl 8(%%rdi), %%eax", E{8, 4, kL}),
      FORM(kEm, "movq 8(%%rdi,%%rbx,8), %%rax", E{32, 8, kL}),
      FORM(kEm, "movzbl 3(%%rdi), %%eax", E{3, 1, kL}),
      FORM(kEm, "movsbq 3(%%rdi), %%rax", E{3, 1, kL}),
      FORM(kEm, "movslq 4(%%rdi), %%rax", E{4, 4, kL}),
      FORM(kEm, "movb 7(%%rdi), %%ah", E{7, 1, kL}),
      FORM(kEm, "movq %%rdx, 16(%%rdi)", E{16, 8, kS}),
      FORM(kEm, "movb %%dh, 5(%%rdi)", E{5, 1, kS}),
      FORM(kEm, "movw $0x1234, 6(%%rdi)", E{6, 2, kS}),
      FORM(kEm, "movq $-5, 40(%%rdi)", E{40, 8, kS}),
      FORM(kEm, "cmpq %%rdx, 8(%%rdi)", E{8, 8, kL}),
      FORM(kEm, "cmpb $7, 8(%%rdi)", E{8, 1, kL}),
      FORM(kEm, "testl %%edx, 12(%%rdi)", E{12, 4, kL}),
      FORM(kEm, "subl 12(%%rdi), %%edx", E{12, 4, kL}),
      FORM(kEm, "adcq %%rdx, 24(%%rdi)", E{24, 8, kU}),
      FORM(kEm, "xorb $0x55, 1(%%rdi)", E{1, 1, kU}),
      FORM(kEm, "incw 2(%%rdi)", E{2, 2, kU}),
      FORM(kEm, "negq 8(%%rdi)", E{8, 8, kU}),
      FORM(kEm, "lock addl %%edx, 4(%%rdi)", E{4, 4, kU}),
      FORM(kEm, "lock decq 8(%%rdi)", E{8, 8, kU}),
      FORM(kEm, "lock xaddq %%rdx, 8(%%rdi)", E{8, 8, kU}),
      FORM(kEm, "xchgl %%edx, 8(%%rdi)", E{8, 4, kU}),
      FORM(kEm, "lock cmpxchgq %%rdx, 8(%%rdi)", E{8, 8, kU}),
      FORM(kEm, "movl 8(%%rdi), %%eax\n lock cmpxchgl %%edx, 8(%%rdi)", E{8, 4, kL}, E{8, 4, kU}),
      FORM(kEm, "lock cmpxchg8b 8(%%rdi)", E{8, 8, kU}),
      FORM(kEm, "movq (%%rdi), %%rax\n movq 8(%%rdi), %%rdx\n lock cmpxchg16b (%%rdi)", E{0, 8, kL}, E{8, 8, kL},
           E{0, 16, kU}),
      FORM(kEm, "rep movsb", E{0, 100, kL, true}, E{0, 100, kS}),
      FORM(kEm, "mov $10, %%ecx\n rep movsq", E{0, 80, kL, true}, E{0, 80, kS}),
      FORM(kEm, "mov %%r8, %%rsi\n rep movsb", E{0, 100, kS}),
      FORM(kEm, "mov %%rdi, %%rsi\n mov %%r8, %%rdi\n rep movsb", E{0, 100, kL}),
      FORM(kEm, "mov $10, %%ecx\n rep stosq", E{0, 80, kS}),
      FORM(kEm, "xor %%ecx, %%ecx\n rep stosq"),
      FORM(kEm, "add $99, %%rdi\n add $99, %%rsi\n std\n rep movsb", E{0, 100, kL, true}, E{0, 100, kS}),
      FORM(kEm, "stosl", E{0, 4, kS}),
      FORM(kEm, "movsw", E{0, 2, kL, true}, E{0, 2, kS}),
      FORM(kEm, "lodsl", E{0, 4, kL, true}),
      FORM(kDi, "movups 3(%%rdi), %%xmm0", E{3, 16, kL}),
      FORM(kDi, "movups %%xmm0, 16(%%rdi)", E{16, 16, kS}),
      FORM(kDi, "movaps %%xmm0, 16(%%rdi)", E{16, 16, kS}),
      FORM(kDi, "movss %%xmm0, 4(%%rdi)", E{4, 4, kS}),
      FORM(kDi, "movsd 8(%%rdi), %%xmm0", E{8, 8, kL}),
      FORM(kDi, "cvtsi2sdq 8(%%rdi), %%xmm0", E{8, 8, kL}),
      FORM(kDi, "paddd 16(%%rdi), %%xmm0", E{16, 16, kL}),
      FORM(kDi, "imulq 8(%%rdi), %%rdx", E{8, 8, kL}),
      FORM(kDi, "popcntq 8(%%rdi), %%rax", E{8, 8, kL}),
      FORM(kEm, "cmoveq 8(%%rdi), %%rax", E{8, 8, kL}),
      FORM(kDi, "pushq 8(%%rdi)\n popq %%rax", E{8, 8, kL}),
      FORM(kDi, "pushq %%rdx\n popq 8(%%rdi)", E{8, 8, kS}),
      FORM(kDi, "clflush 8(%%rdi)"),
      FORM(kSt, "xor %%edx, %%edx\n mov $1000000, %%eax\n divl 8(%%rdi)", E{8, 4, kL}),
      FORM(kSt, "movb $9, %%al\n cbtw\n divb 8(%%rdi)", E{8, 1, kL}),
      FORM512(kDi, "vmovups (%%rdi), %%zmm0", E{0, 64, kL}),
      FORM512(kDi, "vmovdqu32 (%%rdi), %%zmm0%{%%k1%}%{z%}", E{0, 16, kL}, E{32, 16, kL}),
      FORM512(kDi, "vmovdqu32 %%zmm0, (%%rdi)%{%%k1%}", E{0, 16, kS}, E{32, 16, kS}),
      FORM512(kDi, "vmovdqu8 %%zmm0, 64(%%rdi)%{%%k1%}", E{64, 4, kS}, E{72, 4, kS}),
      FORM512(kDi, "vpaddd (%%rdi)%{1to16%}, %%zmm0, %%zmm0", E{0, 4, kL}),
      FORM512(kDi, "vpcompressd %%zmm0, 4(%%rdi)%{%%k1%}", E{4, 32, kS}),
      FORM512(kDi, "kxorq %%k1, %%k1, %%k1\n kmovq 8(%%rdi), %%k1", E{8, 8, kL}),
      FORM512(kDi,
              "vpxord %%zmm1, %%zmm1, %%zmm1\n mov $5, %%eax\n kmovw %%eax, %%k1\n"
              "vpgatherdd 20(%%rdi,%%zmm1,4), %%zmm0%{%%k1%}",
              E{20, 4, kL}, E{20, 4, kL}),
      FORM512(kDi, "vmovdqu 32(%%rdi), %%ymm0", E{32, 32, kL}),
  };
}

}  // namespace

const std::vector<Form>& forms() {
  static const std::vector<Form> all = make_forms();
  return all;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

}  // namespace classaccess::test
