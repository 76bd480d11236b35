// Whether a function was entered by a call of it: the instruction before the return address.
#include <string.h>

#include "agent/base/safe_load.h"
#include "agent/calls/native_hooks.h"
#include "agent/x86/decode.h"
#include "agent/x86/operand.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;

// Pages of code that calls, as they were found: the fast half reads them without another look. Page 0 is none.
constexpr uint32_t kPages = 4096;
std::atomic<uint64_t> g_code_pages[kPages];

bool is_known_code(uint64_t address) {
  uint64_t page = address / kPage;
  return page != 0 && g_code_pages[page % kPages].load(std::memory_order_relaxed) == page;
}

void remember_code(uint64_t address) {
  uint64_t page = address / kPage;
  g_code_pages[page % kPages].store(page, std::memory_order_relaxed);
}

// PLT stubs, by where they are: the GOT slot through which they jump. Both words are one row,
// valid if they go together.
struct PltRow {
  std::atomic<uint64_t> stub{0}, both{0};
};
constexpr uint32_t kPltRows = 4096;
PltRow g_plt[kPltRows];

PltRow& plt_row(uint64_t stub) { return g_plt[stub / 4 % kPltRows]; }

uint64_t known_slot(uint64_t stub) {
  const PltRow& row = plt_row(stub);
  uint64_t at = row.stub.load(std::memory_order_relaxed);
  return at == stub ? row.both.load(std::memory_order_relaxed) ^ stub : 0;
}

uint64_t load_64(uint64_t address) { return *reinterpret_cast<const volatile uint64_t*>(address); }

int32_t load_32(uint64_t address) {
  int32_t value;
  memcpy(&value, reinterpret_cast<const void*>(address), 4);
  return value;
}

// The slot of a PLT stub: [endbr64] [bnd] jmp [rip + d]. 0: there is none at `target`.
uint64_t slot_of_stub(uint64_t target) {
  uint8_t bytes[11];
  if (target >> 47 != 0 || !safe_copy(bytes, target, sizeof(bytes))) return 0;
  uint64_t at = 0;
  if (memcmp(bytes, "\xf3\x0f\x1e\xfa", 4) == 0) at = 4;
  if (bytes[at] == 0xf2) ++at;
  if (bytes[at] != 0xff || bytes[at + 1] != 0x25) return 0;
  int32_t distance;
  memcpy(&distance, bytes + at + 2, 4);
  return target + at + 6 + static_cast<uint64_t>(static_cast<int64_t>(distance));
}

bool leads_to(uint64_t target, uint64_t entry) {
  if (target == entry) return true;
  const uint64_t slot = slot_of_stub(target);
  uint64_t value = 0;
  if (slot == 0 || slot >> 47 != 0 || !safe_load(slot, &value) || value != entry) return false;
  PltRow& row = plt_row(target);
  row.stub.store(0, std::memory_order_relaxed);
  row.both.store(slot ^ target, std::memory_order_relaxed);
  row.stub.store(target, std::memory_order_relaxed);
  return true;
}

void read_registers(const EntryFrame& frame, CpuState* cpu) {
  const uint64_t values[16] = {frame.rax, frame.rcx, frame.rdx, frame.rbx, 0,         frame.rbp, frame.rsi, frame.rdi,
                               frame.r8,  frame.r9,  frame.r10, frame.r11, frame.r12, frame.r13, frame.r14, frame.r15};
  memcpy(cpu->gpr, values, sizeof(values));
  // Before the call pushed.
  cpu->gpr[4] = reinterpret_cast<uint64_t>(&frame.return_address) + 8;
  cpu->fs_base = 0;
}

// The `length` bytes at `at` are a call, and one of this function.
bool is_call_of(const uint8_t* bytes, uint64_t length, uint64_t at, uint64_t entry, const CpuState& cpu) {
  Instruction in;
  if (!decode(bytes, length, &in) || in.length != length || in.map != OpcodeMap::k1Byte ||
      in.encoding != Encoding::kLegacy) {
    return false;
  }
  if (in.opcode == 0xe8) {
    return leads_to(
        at + length +
            static_cast<uint64_t>(static_cast<int64_t>(load_32(reinterpret_cast<uint64_t>(bytes) + length - 4))),
        entry);
  }
  if (in.opcode != 0xff || (in.modrm >> 3 & 7) != 2) return false;
  if (!in.has_memory) return leads_to(cpu.gpr[in.rm], entry);
  CpuState there = cpu;
  there.rip = at;
  if (in.segment == 0x64) asm("mov %%fs:0, %0" : "=r"(there.fs_base));
  uint64_t address = effective_address(in, there);
  uint64_t target = 0;
  return address >> 47 == 0 && safe_load(address, &target) && leads_to(target, entry);
}

// Bytes of the program before the return address, those that we have replaced put back.
void put_originals_back(uint64_t low, uint8_t* bytes, uint64_t count) {
  for (uint32_t i = 1; i < g_native_hooks.end(); ++i) {
    const NativeHook& hook = g_native_hooks.row(i);
    if (!hook.in_force.load(std::memory_order_acquire) || hook.patch >= low + count || hook.patch + kJumpBytes <= low) {
      continue;
    }
    for (uint64_t j = 0; j < kJumpBytes && j < hook.moved; ++j) {
      uint64_t at = hook.patch + j;
      if (at >= low && at < low + count) bytes[at - low] = hook.original[j];
    }
  }
}

bool check_slowly(const NativeHook& hook, const EntryFrame& frame, uint64_t after) {
  constexpr uint64_t kLongest = 8, kShortest = 2;
  uint8_t bytes[kLongest];
  uint64_t have = kLongest;
  // The code may begin within these bytes, on a page that nothing lies before.
  if (after >> 47 != 0 || after < kPage) return false;
  if (!safe_copy(bytes, after - kLongest, kLongest)) {
    have = after % kPage;
    if (have < kShortest || have > kLongest || !safe_copy(bytes + kLongest - have, after - have, have)) return false;
  }
  CpuState cpu;
  read_registers(frame, &cpu);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t length = kShortest; length <= have; ++length) {
      if (is_call_of(bytes + kLongest - length, length, after - length, hook.entry, cpu)) {
        remember_code(after);
        return true;
      }
    }
    if (round == 0) {
      uint8_t before[kLongest];
      memcpy(before, bytes, kLongest);
      put_originals_back(after - have, bytes + kLongest - have, have);
      if (memcmp(before, bytes, kLongest) == 0) return false;
    }
  }
  return false;
}

}  // namespace

CallCheck check_call(const NativeHook& hook, const EntryFrame& frame, uint64_t after, bool all) {
  if (all) return check_slowly(hook, frame, after) ? CallCheck::kYes : CallCheck::kNo;
  if (!is_known_code(after) || after % kPage < 8) return CallCheck::kAskSlowly;
  const auto* bytes = reinterpret_cast<const uint8_t*>(after);
  uint64_t target = after + static_cast<uint64_t>(static_cast<int64_t>(load_32(after - 4)));
  if (bytes[-5] == 0xe8) {
    if (target == hook.entry) return CallCheck::kYes;
    uint64_t slot = known_slot(target);
    if (slot != 0 && load_64(slot) == hook.entry) return CallCheck::kYes;
  }
  if (bytes[-6] == 0xff && bytes[-5] == 0x15 && is_known_code(target) && target % kPage <= kPage - 8 &&
      load_64(target) == hook.entry) {
    return CallCheck::kYes;
  }
  if (bytes[-2] == 0xff && (bytes[-1] & 0xf8) == 0xd0) {
    // Saved from r11 up to rax, see EntryFrame; the rest only for the slow half.
    const uint64_t low[8] = {frame.rax, frame.rcx, frame.rdx, 0, 0, 0, frame.rsi, frame.rdi};
    const uint64_t high[4] = {frame.r8, frame.r9, frame.r10, frame.r11};
    int number = bytes[-1] & 7;
    uint64_t value = low[number];
    if (bytes[-3] == 0x41 && number < 4) {
      value = high[number];
      if (value == hook.entry) return CallCheck::kYes;
    } else if (value == hook.entry) {
      return CallCheck::kYes;
    }
  }
  return CallCheck::kAskSlowly;
}

void forget_call_sites() {
  for (std::atomic<uint64_t>& page : g_code_pages) page.store(0, std::memory_order_relaxed);
  for (PltRow& row : g_plt) row.stub.store(0, std::memory_order_relaxed);
}

}  // namespace classaccess
