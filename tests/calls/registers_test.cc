// A hook changes no register, neither on the way in nor on the way out.
#include <gtest/gtest.h>
#include <string.h>

#include <random>
#include <thread>

#include "agent/calls/native_hooks.h"
#include "tests/calls/called_registers.h"
#include "tests/calls/hooks.h"

namespace classaccess {
namespace {

constexpr uint64_t kStatusFlags = 0x8d5;  // CF, PF, AF, ZF, SF, OF
const char* const kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                              "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

void fill(RegisterFile* file, std::mt19937_64* random) {
  for (uint64_t& word : file->gpr) word = (*random)();
  for (auto& vector : file->vectors) {
    for (uint8_t& byte : vector) byte = static_cast<uint8_t>((*random)());
  }
  for (uint64_t& mask : file->masks) mask = (*random)();
  file->flags = ((*random)() & kStatusFlags) | 0x202;
}

// The first register that differs; "": none.
std::string difference(const RegisterFile& a, const RegisterFile& b) {
  for (int i = 0; i < 16; ++i) {
    if (i != 4 && a.gpr[i] != b.gpr[i]) return kNames[i];
  }
  if (((a.flags ^ b.flags) & kStatusFlags) != 0) return "flags";
  const int level = called_vector_level();
  for (int i = 0; i < (level == 2 ? 32 : 16); ++i) {
    if (memcmp(a.vectors[i], b.vectors[i], 16u << level) != 0) return "vector " + std::to_string(i);
  }
  for (int i = 0; level == 2 && i < 8; ++i) {
    if (a.masks[i] != b.masks[i]) return "k" + std::to_string(i);
  }
  return "";
}

TEST(NativeCalls, EveryRegisterAndFlagSurvives) {
  struct Way {
    const char* name;
    void (*call)();
  };
  const Way kWays[] = {{"direct", called_direct},
                       {"through the GOT", called_through_got},
                       {"through r11", called_through_r11},
                       {"through memory", called_through_memory}};
  constexpr int kRounds = 200;
  Hooks hooks({"libcalled_library.so!called_take_registers"});
  ASSERT_EQ(hooks.error(), "");
  // Single rows too; nobody takes them, so that the ring gets full.
  g_call_rows = true;
  uint64_t calls = 0;
  auto run = [&](unsigned seed) {
    std::mt19937_64 random(seed);
    CalledRegisters* registers = called_registers();
    for (int round = 0; round < kRounds; ++round) {
      for (const Way& way : kWays) {
        fill(&registers->given, &random);
        fill(&registers->returned, &random);
        memset(&registers->seen, 0, sizeof(registers->seen));
        memset(&registers->after, 0, sizeof(registers->after));
        // The slow half of the entry.
        if (random() % 2 == 0) forget_call_sites();
        way.call();
        ++calls;
        ASSERT_EQ(difference(registers->seen, registers->given), "") << way.name << " in, seed " << seed;
        ASSERT_EQ(difference(registers->after, registers->returned), "") << way.name << " out, seed " << seed;
      }
    }
  };
  run(1);
  // Threads whose first timed call it is.
  for (unsigned seed = 2; seed < 14; ++seed) std::thread(run, seed).join();
  g_call_rows = false;
  EXPECT_EQ(hooks.of("called_take_registers").count, calls);
  EXPECT_EQ(hooks.of("called_take_registers").untimed, 0u);
}

}  // namespace
}  // namespace classaccess
