#include "tests/x86/differential.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "agent/x86/displace.h"
#include "agent/x86/emulate.h"
#include "agent/x86/operand.h"

namespace classaccess::test {
namespace {

constexpr int kOpen = PROT_READ | PROT_WRITE;
constexpr size_t kHolePage = 5;

uint64_t heap() { return reinterpret_cast<uint64_t>(g_heap); }

// The heap through its twin, then the page behind it.
uint8_t* at(size_t offset) { return offset < kHeapBytes ? twin() + offset : g_behind + (offset - kHeapBytes); }

void copy_out(size_t low, size_t high, uint8_t* to) {
  size_t split = std::clamp(kHeapBytes, low, high);
  memcpy(to + low, at(low), split - low);
  if (split < high) memcpy(to + split, at(split), high - split);
}

// MASKMOVDQU may fault for bytes that are masked off, VEXTRACT* does (exception type E6NF).
bool may_fault_masked(const Instruction& in) {
  if (in.touch == Touch::kByteMask) return true;
  return in.encoding == Encoding::kEvex && in.map == OpcodeMap::k0F3A &&
         (in.opcode == 0x19 || in.opcode == 0x1b || in.opcode == 0x39 || in.opcode == 0x3b);
}

bool is_stack_form(const Instruction& in) {
  return in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k1Byte &&
         (in.opcode == 0x8f || (in.opcode == 0xff && (in.modrm >> 3 & 7) == 6));
}

}  // namespace

void Differential::fill(const Variant& variant) {
  fill_memory(variant, *random_, before_, kBytes);
  memcpy(twin(), before_, kHeapBytes);
  memcpy(g_behind, before_ + kHeapBytes, kPage);
}

void Differential::fill_random() {
  for (size_t i = 0; i < kBytes; i += 8) {
    uint64_t value = (*random_)();
    memcpy(before_ + i, &value, 8);
  }
  memcpy(twin(), before_, kHeapBytes);
  memcpy(g_behind, before_ + kHeapBytes, kPage);
}

uint64_t Differential::pick_address(Place place, unsigned size, bool locked) {
  Random& random = *random_;
  uint64_t edge = heap() + (place == Place::kHeapEnd ? kHeapBytes : kHolePage * kPage);
  if (place == Place::kInside || locked) {
    uint64_t offset = 512 + random() % 2048;
    uint64_t base = locked && place != Place::kInside ? edge - kPage : heap() + 4 * kPage;
    if (locked) return base + (offset & ~uint64_t{15});
    switch (random() % 3) {
      case 0: return base + (offset & ~uint64_t{63});
      case 1: return base + (offset & ~uint64_t{7});
      default: return base + offset;
    }
  }
  uint64_t back = random() % (size + 2u);  // from beside the edge, below, to above
  if (random() % 2) back &= ~uint64_t{7};
  return edge - back;
}

void Differential::make_exchange_succeed(const Case& c) {
  uint64_t offset = effective_address(c.decoded, cpu_state(c.state)) - heap();
  if (offset + 16 > kBytes) return;
  if (c.decoded.size <= 8 && c.decoded.opcode != 0xc7) {
    memcpy(before_ + offset, &c.state.gpr[0], c.decoded.size);
    return;
  }
  size_t half = c.decoded.size / 2u;
  memcpy(before_ + offset, &c.state.gpr[0], half);
  memcpy(before_ + offset + half, &c.state.gpr[2], half);
}

void Differential::restore(uint64_t address) {
  uint64_t offset = address - heap();
  low_ = offset > kMargin ? offset - kMargin : 0;
  high_ = std::min<uint64_t>(offset + kMargin, kBytes);
  size_t split = std::clamp(kHeapBytes, low_, high_);
  memcpy(at(low_), before_ + low_, split - low_);
  if (split < high_) memcpy(at(split), before_ + split, high_ - split);
  if (stack_ != 0) memcpy(reinterpret_cast<void*>(stack_ - 128), stack_before_, sizeof(stack_before_));
}

std::string Differential::memory_difference() {
  if (stack_ != 0 && memcmp(stack_after_, reinterpret_cast<void*>(stack_ - 128), sizeof(stack_after_)) != 0) {
    return " stack;";
  }
  for (size_t i = low_; i < high_; ++i) {
    size_t split = std::clamp(kHeapBytes, i, high_);
    if (memcmp(after_ + i, at(i), split - i) == 0 &&
        (split == high_ || memcmp(after_ + split, at(split), high_ - split) == 0)) {
      return "";
    }
    if (after_[i] == *at(i)) continue;
    size_t n = std::min<size_t>(32, kBytes - i);
    std::string got;
    for (size_t k = 0; k < n; ++k) got += hex(at(i + k), 1);
    return " memory at +" + std::to_string(i) + " " + hex(after_ + i, n) + ", got " + got + ";";
  }
  return "";
}

std::string Differential::check_rest() {
  bool same = memcmp(before_, twin(), kHeapBytes) == 0 && memcmp(before_ + kHeapBytes, g_behind, kPage) == 0;
  return same ? "" : "memory was written far from the operands";
}

std::string Differential::check_emulated(const Case& c, const MachineState& native, uint64_t address) {
  restore(address);
  CpuState cpu = cpu_state(c.state);
  uint64_t value = ~uint64_t{0};
  if (!emulate(c.decoded, &cpu, reinterpret_cast<void*>(address + g_twin_distance), &value)) return "not emulated";
  MachineState actual = c.state;
  memcpy(actual.gpr, cpu.gpr, sizeof(cpu.gpr));
  actual.rflags = cpu.rflags;
  std::string wrong = compare(native, actual, false) + memory_difference();
  if (cpu.rip != native_code_address() + c.length) wrong += " rip;";
  uint64_t expected = 0;
  memcpy(&expected, (c.decoded.op == Op::kLoad ? before_ : after_) + (address - heap()),
         std::min<size_t>(c.decoded.size, 8));
  if (expected != value) wrong += " value;";
  ++counts_.emulated;
  return wrong.empty() ? wrong : " emulated:" + wrong;
}

std::string Differential::check_displaced(const Case& c, Place place, const MachineState& native, bool reaches,
                                          bool may_fault) {
  restore(effective_address(c.decoded, cpu_state(c.state)));
  uint8_t copy[kMaxDisplaced];
  size_t length = write_displaced(c.decoded, native_exit(), copy);
  if (length == 0 || length > kMaxDisplaced) return " displaced: no copy";
  MachineState actual = c.state;
  if (place == Place::kHole) protect(twin(), kHolePage, 1, PROT_NONE);
  NativeResult r = run_displaced(copy, length, g_twin_distance, &actual);
  if (place == Place::kHole) protect(twin(), kHolePage, 1, kOpen);
  ++counts_.displaced;
  std::string wrong;
  if (r.outcome == Outcome::kPageFault) {
    if (!reaches && !may_fault) return " displaced: a fault";
    uint64_t closed_low = (place == Place::kHole ? heap() + kHolePage * kPage : heap() + kHeapBytes) + g_twin_distance;
    if (r.fault_address < closed_low || r.fault_address >= closed_low + kPage) wrong += " fault elsewhere;";
    // The thread goes back to the original: what the copy has done so far must not matter.
    protect(g_heap, 0, kPages, kOpen);
    if (run_native(c.bytes, c.length, &actual).outcome != Outcome::kCompleted) wrong += " not restartable;";
    if (reaches) ++counts_.crossed;
  } else if (r.outcome != Outcome::kCompleted) {
    return " displaced: not completed";
  } else if (reaches) {
    wrong += " completed beyond the heap;";
  }
  wrong += compare(native, actual, true) + memory_difference();
  return wrong.empty() ? wrong : " displaced:" + wrong;
}

std::string Differential::check(const Case& c, Place place, bool* ran) {
  CpuState cpu = cpu_state(c.state);
  uint64_t address = effective_address(c.decoded, cpu);
  stack_ = is_stack_form(c.decoded) ? c.state.gpr[4] : 0;
  if (stack_ != 0) memcpy(stack_before_, reinterpret_cast<void*>(stack_ - 128), sizeof(stack_before_));
  restore(address);
  MachineState native = c.state;
  *ran = run_native(c.bytes, c.length, &native).outcome == Outcome::kCompleted;
  if (!*ran) {
    ++counts_.not_run;
    restore(address);
    return "";
  }
  ++counts_.cases;
  copy_out(low_, high_, after_);
  if (stack_ != 0) memcpy(stack_after_, reinterpret_cast<void*>(stack_ - 128), sizeof(stack_after_));

  // Does it touch closed bytes? Only lanes that take part count.
  bool reaches = false, may_fault = false;
  if (place == Place::kHole || place == Place::kHeapEnd) {
    uint64_t low = place == Place::kHole ? heap() + kHolePage * kPage : heap() + kHeapBytes;
    cpu.fpstate = xsave_image(c.state);
    TouchedRuns touched;
    find_touched(c.decoded, cpu, &touched);
    for (uint32_t i = 0; i < touched.count; ++i) {
      const TouchedRun& run = touched.runs[i];
      reaches |= run.address + run.size > low && run.address < low + kPage;
    }
    bool extends = address + c.decoded.size > low;
    may_fault = !reaches && extends && may_fault_masked(c.decoded);
    may_fault |= !c.decoded.touches_memory;  // CLFLUSH, CLWB check the page like a load of one byte
    if (!reaches && extends && !may_fault && c.decoded.touch != Touch::kIndexed) ++counts_.masked;
  }

  std::string wrong;
  protect(g_heap, 0, kPages, PROT_NONE);
  if (c.decoded.execute == Execute::kEmulate && !reaches) wrong += check_emulated(c, native, address);
  if (can_displace(c.decoded)) wrong += check_displaced(c, place, native, reaches, may_fault);
  protect(g_heap, 0, kPages, kOpen);
  restore(address);
  return wrong;
}

}  // namespace classaccess::test
