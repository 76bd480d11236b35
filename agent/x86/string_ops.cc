#include "agent/x86/string_ops.h"

#include <cstddef>

namespace classaccess {
namespace {

// Registers of one run; offsets are used by the assembly below.
struct StringRegisters {
  uint64_t rdi, rsi, rcx, rax, flags, faulted;
};
static_assert(offsetof(StringRegisters, flags) == 32 && offsetof(StringRegisters, faulted) == 40);

// Every slot is 8 bytes and begins with its string instruction: a fault has that PC.
enum Slot : unsigned {
  kMovs = 0,
  kStos = 4,
  kLods = 8,
  kRepeCmps = 12,
  kRepneCmps = 16,
  kRepeScas = 20,
  kRepneScas = 24,
  kSlots = 28
};

}  // namespace

extern "C" {
void classaccess_string_run(StringRegisters* registers, unsigned slot);
extern const char classaccess_string_slots[];
extern const char classaccess_string_faulted[];
}

asm(R"(
  .text
  .p2align 4
  .globl classaccess_string_run
  .hidden classaccess_string_run
  .type classaccess_string_run,@function
classaccess_string_run:
  mov %rdi, %r8
  mov %esi, %esi
  lea classaccess_string_slots(%rip), %r9
  lea (%r9,%rsi,8), %r9
  mov 0(%r8), %rdi
  mov 8(%r8), %rsi
  mov 16(%r8), %rcx
  mov 24(%r8), %rax
  pushq 32(%r8)
  popfq
  jmp *%r9

  .macro classaccess_string_slot instruction:vararg
  .p2align 3
  \instruction
  jmp classaccess_string_done
  .endm
  .p2align 3
  .globl classaccess_string_slots
  .hidden classaccess_string_slots
classaccess_string_slots:
  .irp size, b, w, l, q
  classaccess_string_slot rep movs\size
  .endr
  .irp size, b, w, l, q
  classaccess_string_slot rep stos\size
  .endr
  .irp size, b, w, l, q
  classaccess_string_slot rep lods\size
  .endr
  .irp size, b, w, l, q
  classaccess_string_slot repe cmps\size
  .endr
  .irp size, b, w, l, q
  classaccess_string_slot repne cmps\size
  .endr
  .irp size, b, w, l, q
  classaccess_string_slot repe scas\size
  .endr
  .irp size, b, w, l, q
  classaccess_string_slot repne scas\size
  .endr
  .org classaccess_string_slots + 28 * 8  # an error if a slot is longer than 8 bytes
  .globl classaccess_string_faulted
  .hidden classaccess_string_faulted
classaccess_string_faulted:
  movq $1, 40(%r8)
classaccess_string_done:
  pushfq
  popq 32(%r8)
  cld
  mov %rdi, 0(%r8)
  mov %rsi, 8(%r8)
  mov %rcx, 16(%r8)
  mov %rax, 24(%r8)
  ret
  .size classaccess_string_run, .-classaccess_string_run
)");

namespace {

constexpr unsigned kRax = 0, kRcx = 1, kRsi = 6, kRdi = 7;
constexpr uint64_t kZero = 0x40, kDirection = 0x400, kStatus = 0x8d5;

struct Pointer {
  unsigned number;   // register
  uint64_t address;  // what the program sees
  uint64_t host;     // where we access it
  bool used;
};

unsigned size_index(unsigned bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

struct Run {
  const Instruction& in;
  CpuState* state;
  const StringAccess& access;
  Pointer source{}, destination{};
  unsigned slot = 0;
  bool down = false, compares = false, repeat_while_equal = false;
  unsigned bytes = 0;

  uint64_t reg(unsigned number) const {
    uint64_t value = state->gpr[number];
    return in.address32 ? value & 0xffffffffu : value;
  }
  void set_reg(unsigned number, uint64_t value) { state->gpr[number] = in.address32 ? value & 0xffffffffu : value; }

  void classify();
  uint64_t reach(Pointer* pointer) const;
  uint64_t step(uint64_t wanted, bool* faulted);
  void report(const Pointer& pointer, uint64_t elements, Op op) const;
  StringResult run();
};

void Run::classify() {
  bytes = in.operand_bytes;
  down = (state->rflags & kDirection) != 0;
  repeat_while_equal = !in.repne;
  source.number = kRsi;
  destination.number = kRdi;
  unsigned base = kMovs;
  switch (in.opcode & 0xfe) {
    case 0xa4: source.used = destination.used = true; break;
    case 0xa6:
      source.used = destination.used = compares = true;
      base = in.repne ? kRepneCmps : kRepeCmps;
      break;
    case 0xaa:
      destination.used = true;
      base = kStos;
      break;
    case 0xac:
      source.used = true;
      base = kLods;
      break;
    default:
      destination.used = compares = true;
      base = in.repne ? kRepneScas : kRepeScas;
      break;
  }
  slot = base + size_index(bytes);
}

// Sets host; how many elements can be done from here at this distance.
uint64_t Run::reach(Pointer* pointer) const {
  uint64_t offset = reg(pointer->number);
  pointer->address = offset;
  if (pointer->number == kRsi && in.segment == 0x64) pointer->address += state->fs_base;
  uint64_t below = 0, above = 0;
  pointer->host = access.translate(access.context, pointer->address, &below, &above);
  if (pointer->host == 0) return 0;
  if (in.address32) {  // registers wrap at 4 GB
    uint64_t to_wrap = (uint64_t{1} << 32) - offset;
    if (above > to_wrap) above = to_wrap;
    if (below > offset) below = offset;
  }
  if (above < bytes) return 0;
  return down ? 1 + below / bytes : above / bytes;
}

// Runs up to `wanted` iterations; how many completed.
uint64_t Run::step(uint64_t wanted, bool* faulted) {
  uint64_t flags = 0x202 | (state->rflags & (kStatus | kDirection));
  StringRegisters r{destination.host, source.host, wanted, state->gpr[kRax], flags, 0};
  classaccess_string_run(&r, slot);
  uint64_t completed = wanted - r.rcx;
  uint64_t distance = completed * bytes;
  if (down) distance = uint64_t{0} - distance;
  *faulted = r.faulted != 0;
  if (completed == 0) return 0;  // not even the upper halves change with address size 67
  if (source.used) set_reg(kRsi, reg(kRsi) + distance);
  if (destination.used) set_reg(kRdi, reg(kRdi) + distance);
  state->gpr[kRax] = r.rax;
  if (compares) state->rflags = (state->rflags & ~kStatus) | (r.flags & kStatus);
  return completed;
}

void Run::report(const Pointer& pointer, uint64_t elements, Op op) const {
  if (!pointer.used || access.touched == nullptr) return;
  uint64_t low = down ? pointer.address - (elements - 1) * bytes : pointer.address;
  access.touched(access.context, low, elements * bytes, op);
}

StringResult Run::run() {
  bool repeats = in.rep || in.repne;
  uint64_t left = repeats ? reg(kRcx) : 1;
  while (left != 0) {
    uint64_t chunk = left;
    Pointer* pointers[] = {&source, &destination};
    for (Pointer* pointer : pointers) {
      if (!pointer->used) continue;
      uint64_t elements = reach(pointer);
      if (elements == 0) return StringResult::kStopped;
      if (elements < chunk) chunk = elements;
    }
    bool faulted = false;
    uint64_t completed = step(chunk, &faulted);
    left -= completed;
    if (repeats && completed != 0) set_reg(kRcx, left);
    if (completed != 0) {
      report(source, completed, Op::kLoad);
      report(destination, completed, compares ? Op::kLoad : Op::kStore);
    }
    if (faulted) return StringResult::kStopped;
    bool equal = (state->rflags & kZero) != 0;
    if (compares && repeats && equal != repeat_while_equal) break;
  }
  state->rip += in.length;
  return StringResult::kDone;
}

}  // namespace

StringResult run_string(const Instruction& in, CpuState* state, const StringAccess& access) {
  if (in.execute != Execute::kString) return StringResult::kStopped;
  Run run{in, state, access};
  run.classify();
  return run.run();
}

uint64_t string_recover(uint64_t pc) {
  uint64_t offset = pc - reinterpret_cast<uint64_t>(classaccess_string_slots);
  if (offset >= kSlots * 8 || offset % 8 != 0) return 0;
  return reinterpret_cast<uint64_t>(classaccess_string_faulted);
}

}  // namespace classaccess
