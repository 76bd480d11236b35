#include "agent/x86/real_ops.h"

namespace classaccess::real {
namespace {

constexpr uint64_t kStatus = 0x8d5;  // CF PF AF ZF SF OF

// Our own control flags (interrupts on, direction up) with the interrupted status flags.
uint64_t ours(uint64_t flags) { return 0x202 | (flags & kStatus); }
void merge(uint64_t* flags, uint64_t after) { *flags = (*flags & ~kStatus) | (after & kStatus); }

}  // namespace

// This folder is built without a red zone, so the pushes overwrite nothing.
#define WITH_FLAGS(text) "push %[fl]\n\tpopfq\n\t" text "\n\tpushfq\n\tpop %[fl]"

// FORM(mnemonic, suffix, operand modifier)
#define SIZES(FORM, mnemonic)                 \
  switch (bytes) {                            \
    case 1: FORM(mnemonic, "b", "b"); break;  \
    case 2: FORM(mnemonic, "w", "w"); break;  \
    case 4: FORM(mnemonic, "l", "k"); break;  \
    default: FORM(mnemonic, "q", "q"); break; \
  }

#define KINDS(FORM)                    \
  switch (kind) {                      \
    case 0: SIZES(FORM, "add") break;  \
    case 1: SIZES(FORM, "or") break;   \
    case 2: SIZES(FORM, "adc") break;  \
    case 3: SIZES(FORM, "sbb") break;  \
    case 4: SIZES(FORM, "and") break;  \
    case 5: SIZES(FORM, "sub") break;  \
    default: SIZES(FORM, "xor") break; \
  }

#define REGISTER_FORM(mnemonic, suffix, width)                             \
  asm volatile(WITH_FLAGS(mnemonic suffix " %" width "[s], %" width "[d]") \
               : [fl] "+r"(fl), [d] "+r"(destination)                      \
               : [s] "r"(source)                                           \
               : "cc", "memory")
#define MEMORY_FORM(mnemonic, suffix, width)                        \
  asm volatile(WITH_FLAGS(mnemonic suffix " %" width "[s], (%[m])") \
               : [fl] "+r"(fl)                                      \
               : [s] "r"(source), [m] "r"(memory)                   \
               : "cc", "memory")
#define LOCKED_FORM(mnemonic, suffix, width) MEMORY_FORM("lock " mnemonic, suffix, width)
#define UNARY_FORM(mnemonic, suffix, width) \
  asm volatile(WITH_FLAGS(mnemonic suffix " (%[m])") : [fl] "+r"(fl) : [m] "r"(memory) : "cc", "memory")
#define LOCKED_UNARY_FORM(mnemonic, suffix, width) UNARY_FORM("lock " mnemonic, suffix, width)

uint64_t load(const void* memory, unsigned bytes) {
  uint64_t value;
  switch (bytes) {
    case 1: asm volatile("movzbl (%1), %k0" : "=r"(value) : "r"(memory) : "memory"); break;
    case 2: asm volatile("movzwl (%1), %k0" : "=r"(value) : "r"(memory) : "memory"); break;
    case 4: asm volatile("movl (%1), %k0" : "=r"(value) : "r"(memory) : "memory"); break;
    default: asm volatile("movq (%1), %0" : "=r"(value) : "r"(memory) : "memory"); break;
  }
  return value;
}

void store(void* memory, uint64_t value, unsigned bytes){
#define STORE_FORM(mnemonic, suffix, width) \
  asm volatile(mnemonic suffix " %" width "0, (%1)" : : "r"(value), "r"(memory) : "memory")
    SIZES(STORE_FORM, "mov")}

uint64_t alu(unsigned kind, uint64_t destination, uint64_t source, unsigned bytes, uint64_t* flags) {
  uint64_t fl = ours(*flags);
  if (kind == kCmp) {
    SIZES(REGISTER_FORM, "cmp")
  } else {
    KINDS(REGISTER_FORM)
  }
  merge(flags, fl);
  return destination;
}

void alu_memory(unsigned kind, void* memory, uint64_t source, unsigned bytes, bool lock, uint64_t* flags) {
  uint64_t fl = ours(*flags);
  if (lock) {
    KINDS(LOCKED_FORM)
  } else {
    KINDS(MEMORY_FORM)
  }
  merge(flags, fl);
}

void test(uint64_t destination, uint64_t source, unsigned bytes, uint64_t* flags) {
  uint64_t fl = ours(*flags);
  SIZES(REGISTER_FORM, "test")
  merge(flags, fl);
}

void unary_memory(Unary kind, void* memory, unsigned bytes, bool lock, uint64_t* flags) {
  uint64_t fl = ours(*flags);
  switch (kind) {
    case Unary::kNot:
      if (lock) {
        SIZES(LOCKED_UNARY_FORM, "not")
      } else {
        SIZES(UNARY_FORM, "not")
      }
      break;
    case Unary::kNeg:
      if (lock) {
        SIZES(LOCKED_UNARY_FORM, "neg")
      } else {
        SIZES(UNARY_FORM, "neg")
      }
      break;
    case Unary::kInc:
      if (lock) {
        SIZES(LOCKED_UNARY_FORM, "inc")
      } else {
        SIZES(UNARY_FORM, "inc")
      }
      break;
    case Unary::kDec:
      if (lock) {
        SIZES(LOCKED_UNARY_FORM, "dec")
      } else {
        SIZES(UNARY_FORM, "dec")
      }
      break;
  }
  merge(flags, fl);
}

uint64_t exchange(void* memory, uint64_t value, unsigned bytes) {
#define EXCHANGE_FORM(mnemonic, suffix, width) \
  asm volatile(mnemonic suffix " %" width "0, (%1)" : "+r"(value) : "r"(memory) : "memory")
  SIZES(EXCHANGE_FORM, "xchg")
  return value;
}

uint64_t exchange_add(void* memory, uint64_t value, unsigned bytes, bool lock, uint64_t* flags) {
  uint64_t fl = ours(*flags);
#define EXCHANGE_ADD_FORM(mnemonic, suffix, width)                  \
  asm volatile(WITH_FLAGS(mnemonic suffix " %" width "[v], (%[m])") \
               : [fl] "+r"(fl), [v] "+r"(value)                     \
               : [m] "r"(memory)                                    \
               : "cc", "memory")
  if (lock) {
    SIZES(EXCHANGE_ADD_FORM, "lock xadd")
  } else {
    SIZES(EXCHANGE_ADD_FORM, "xadd")
  }
  merge(flags, fl);
  return value;
}

bool compare_exchange(void* memory, uint64_t* rax, uint64_t wanted, unsigned bytes, bool lock, uint64_t* flags) {
  uint64_t fl = ours(*flags);
#define COMPARE_FORM(mnemonic, suffix, width)                       \
  asm volatile(WITH_FLAGS(mnemonic suffix " %" width "[v], (%[m])") \
               : [fl] "+r"(fl), "+a"(*rax)                          \
               : [v] "r"(wanted), [m] "r"(memory)                   \
               : "cc", "memory")
  if (lock) {
    SIZES(COMPARE_FORM, "lock cmpxchg")
  } else {
    SIZES(COMPARE_FORM, "cmpxchg")
  }
  merge(flags, fl);
  return (fl & 0x40) != 0;
}

bool compare_exchange_pair(void* memory, unsigned bytes, uint64_t* rax, uint64_t* rdx, uint64_t rbx, uint64_t rcx,
                           bool lock, uint64_t* flags) {
  uint64_t fl = ours(*flags);
#define PAIR_FORM(text)                                \
  asm volatile(WITH_FLAGS(text " (%[m])")              \
               : [fl] "+r"(fl), "+a"(*rax), "+d"(*rdx) \
               : "b"(rbx), "c"(rcx), [m] "r"(memory)   \
               : "cc", "memory")
  if (bytes == 16) {
    if (lock) {
      PAIR_FORM("lock cmpxchg16b");
    } else {
      PAIR_FORM("cmpxchg16b");
    }
  } else if (lock) {
    PAIR_FORM("lock cmpxchg8b");
  } else {
    PAIR_FORM("cmpxchg8b");
  }
  merge(flags, fl);
  return (fl & 0x40) != 0;
}

bool condition_holds(unsigned code, uint64_t flags) {
  bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80, of = flags & 0x800;
  bool holds = false;
  switch (code >> 1) {
    case 0: holds = of; break;
    case 1: holds = cf; break;
    case 2: holds = zf; break;
    case 3: holds = cf || zf; break;
    case 4: holds = sf; break;
    case 5: holds = pf; break;
    case 6: holds = sf != of; break;
    default: holds = zf || sf != of; break;
  }
  return holds != ((code & 1) != 0);
}

}  // namespace classaccess::real
