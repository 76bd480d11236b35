// Sites: what runs through probes does what it did, whatever its neighbours are and in
// whatever order they are laid; taken back, no byte of ours is left.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "agent/base/counters.h"
#include "agent/probe/probe_thread.h"
#include "agent/protect/heap_gate.h"
#include "tests/probe/probe_world.h"

namespace classaccess {
namespace {

using Bytes = std::vector<uint8_t>;

// Instructions over rdi, rsi (data), rcx (index), with results in rax, rdx, r8 to r11; 2 to
// 9 bytes long.
const Bytes kPieces[] = {
    {0x8b, 0x07},                                            // mov eax, [rdi]
    {0x03, 0x06},                                            // add eax, [rsi]
    {0x8b, 0x47, 0x08},                                      // mov eax, [rdi+8]
    {0x89, 0x56, 0x10},                                      // mov [rsi+16], edx
    {0x48, 0x8b, 0x57, 0x18},                                // mov rdx, [rdi+24]
    {0x48, 0x89, 0x46, 0x20},                                // mov [rsi+32], rax
    {0x44, 0x8b, 0x47, 0x0c},                                // mov r8d, [rdi+12]
    {0x44, 0x89, 0x46, 0x14},                                // mov [rsi+20], r8d
    {0x8b, 0x04, 0x8f},                                      // mov eax, [rdi+rcx*4]
    {0x8b, 0x44, 0x8e, 0x04},                                // mov eax, [rsi+rcx*4+4]
    {0x0f, 0xb6, 0x57, 0x05},                                // movzx edx, byte [rdi+5]
    {0x0f, 0xbe, 0x44, 0x0e, 0x03},                          // movsx eax, byte [rsi+rcx+3]
    {0x3b, 0x47, 0x08},                                      // cmp eax, [rdi+8]
    {0x0f, 0x92, 0xc2},                                      // setb dl
    {0x83, 0x46, 0x08, 0x05},                                // add dword [rsi+8], 5
    {0xf0, 0x0f, 0xc1, 0x47, 0x28},                          // lock xadd [rdi+40], eax
    {0xf0, 0x0f, 0xb1, 0x56, 0x2c},                          // lock cmpxchg [rsi+44], edx
    {0x87, 0x47, 0x30},                                      // xchg [rdi+48], eax
    {0xc7, 0x46, 0x34, 0x78, 0x56, 0x00, 0x00},              // mov dword [rsi+52], 0x5678
    {0x48, 0xc7, 0x87, 0x80, 0x00, 0x00, 0x00, 1, 2, 3, 4},  // mov qword [rdi+128], imm32
    {0xff, 0x46, 0x38},                                      // inc dword [rsi+56]
    {0x88, 0x67, 0x01},                                      // mov [rdi+1], ah
    {0xc5, 0xfe, 0x6f, 0x07},                                // vmovdqu ymm0, [rdi]
    {0xc5, 0xfe, 0x7f, 0x46, 0x40},                          // vmovdqu [rsi+64], ymm0
    {0xf2, 0x0f, 0x10, 0x4f, 0x08},                          // movsd xmm1, [rdi+8]
    {0xf2, 0x0f, 0x11, 0x4e, 0x48},                          // movsd [rsi+72], xmm1
    {0x45, 0x31, 0xc9},                                      // xor r9d, r9d
    {0x4d, 0x8d, 0x50, 0x01},                                // lea r10, [r8+1]
    {0x90},                                                  // nop
};

class Sites : public testing::Test {
 protected:
  explicit Sites(ProbeKind kind = ProbeKind::kCompiled) : world_(ProbeWorld::get(kind)) {}
  ProbeWorld& world_;
  void SetUp() override {
    watch_this_thread(world_.data, ProbeWorld::kDataBytes);
    world_.sites->take_back_all();
    t_probe.cursor = world_.buffer;  // the other world's records
    fill(1);
  }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    auto* words = reinterpret_cast<uint32_t*>(world_.twin);
    for (uint64_t i = 0; i < ProbeWorld::kDataBytes / 4; ++i) words[i] = static_cast<uint32_t>(random());
  }
  Bytes memory() const {
    const auto* from = reinterpret_cast<const uint8_t*>(world_.twin);
    return Bytes(from, from + 1024);
  }
};

// What holds for code of the code cache and of libraries.
class AnySites : public Sites, public testing::WithParamInterface<ProbeKind> {
 protected:
  AnySites() : Sites(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Of, AnySites, testing::Values(ProbeKind::kCompiled, ProbeKind::kLibrary),
                         [](const auto& sites) {
                           return std::string(sites.param == ProbeKind::kLibrary ? "Libraries" : "CodeCache");
                         });

class LibrarySites : public Sites {
 protected:
  LibrarySites() : Sites(ProbeKind::kLibrary) {}
};

TEST_P(AnySites, ThreeByteLoadIsRecordedAndDone) {
  uint64_t pc = world_.put({0x8b, 0x47, 0x08, 0x48, 0x31, 0xd2, 0xc3});  // mov eax,[rdi+8]; xor rdx,rdx
  ASSERT_EQ(world_.lay(pc), LayResult::kLaid);
  EXPECT_EQ(ProbeWorld::call(pc, world_.data, 0, 0, 0), reinterpret_cast<uint32_t*>(world_.twin)[2]);
  auto seen = world_.take_records();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].pc, pc);
  EXPECT_EQ(seen[0].address, world_.data + 8);
}

TEST_P(AnySites, TheBaseOfAnIndexedOperandIsKept) {
  uint64_t pc = world_.put({0x8b, 0x44, 0x8e, 0x04, 0x48, 0x31, 0xd2, 0xc3});
  ASSERT_EQ(world_.lay(pc), LayResult::kLaid);
  ProbeWorld::call(pc, 0, world_.data + 64, 0, 3);
  auto seen = world_.take_records();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].address, world_.data + 64 + 12 + 4);
  EXPECT_EQ(seen[0].base, world_.data + 64);
}

// Bytes that HotSpot may rewrite are not shared.
TEST_F(Sites, UnstableSuccessorsAreRefused) {
  const Bytes after[] = {
      {0xe8, 1, 2, 3, 4}, {0xe9, 1, 2, 3, 4}, {0x0f, 0x1f, 0x84, 0, 1, 2, 3, 4}, {0xcc}, {0x90}, {0xb8, 0, 0, 0, 0},
      {0xb8, 0, 2, 0, 0}, {0x3d, 1, 2, 3, 4}};
  for (const Bytes& next : after) {
    Bytes code = {0x8b, 0x47, 0x08};
    code.insert(code.end(), next.begin(), next.end());
    uint64_t pc = world_.put(code, 512);
    EXPECT_EQ(world_.lay(pc), LayResult::kSuccessor) << std::hex << unsigned{next[0]};
    EXPECT_EQ(world_.bytes(pc, code.size()), code);
  }
  // An immediate that is no oop stays.
  for (const Bytes& next : {Bytes{0xb8, 0xff, 1, 0, 0}, Bytes{0x25, 1, 2, 3, 4}, Bytes{0x81, 0xc1, 1, 2, 3, 4}}) {
    Bytes code = {0x8b, 0x47, 0x08};
    code.insert(code.end(), next.begin(), next.end());
    EXPECT_EQ(world_.lay(world_.put(code, 512)), LayResult::kLaid) << std::hex << unsigned{next[0]};
  }
  // C2's code has no patching stubs.
  uint64_t jump = world_.put({0x8b, 0x47, 0x08, 0xe9, 0, 0, 0, 0, 0xc3}, 512);
  EXPECT_EQ(world_.lay(jump, false), LayResult::kLaid);
  EXPECT_EQ(ProbeWorld::call(jump, world_.data, 0, 0, 0), reinterpret_cast<uint32_t*>(world_.twin)[2]);
  uint64_t nop = world_.put({0x8b, 0x47, 0x08, 0x66, 0x66, 0x90, 0xc3}, 512);
  EXPECT_EQ(world_.lay(nop, false), LayResult::kLaid);
  uint64_t direct_call = world_.put({0x8b, 0x47, 0x08, 0xe8, 1, 2, 3, 4}, 512);
  EXPECT_EQ(world_.lay(direct_call, false), LayResult::kSuccessor);
  // A call behind five bytes of its own does not matter.
  uint64_t pc = world_.put({0x0f, 0xbe, 0x44, 0x0e, 0x03, 0xe8, 0, 0, 0, 0}, 512);
  EXPECT_EQ(world_.lay(pc), LayResult::kLaid);
}

TEST_F(Sites, AnImmediateThatMayBeAnOopIsRefused) {
  auto narrow = static_cast<uint32_t>(world_.data >> 3);
  Bytes code = {0xc7, 0x46, 0x34};
  for (int i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(narrow >> (8 * i)));
  code.push_back(0xc3);
  // The world's heap lies beyond 32 bits << 3: its low bits decode to another address.
  uint64_t decoded = static_cast<uint64_t>(narrow) << 3;
  LayResult expected = decoded >= world_.data && decoded < world_.data + ProbeWorld::kDataBytes ? LayResult::kImmediate
                                                                                                : LayResult::kLaid;
  EXPECT_EQ(world_.lay(world_.put(code, 256)), expected);
}

TEST_P(AnySites, RandomCodeDoesTheSameInAnyOrderOfLaying) {
  unsigned seed = std::random_device()();
  if (const char* given = getenv("CLASSACCESS_SEED")) seed = static_cast<unsigned>(strtoul(given, nullptr, 10));
  SCOPED_TRACE("again: CLASSACCESS_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  uint64_t laid = 0, refused = 0, relaid_before = g_counters.probes_relaid.load();
  for (int round = 0; round < 2000; ++round) {
    // eax, r8d to r10d, ymm0, xmm1 cleared.
    Bytes code = {0x31, 0xc0, 0x45, 0x31, 0xc0, 0x45, 0x31, 0xc9, 0x45,
                  0x31, 0xd2, 0xc5, 0xfd, 0xef, 0xc0, 0x0f, 0x57, 0xc9};
    std::vector<size_t> starts;
    for (size_t i = 0, count = 1 + random() % 10; i < count; ++i) {
      const Bytes& piece = kPieces[random() % std::size(kPieces)];
      starts.push_back(code.size());
      code.insert(code.end(), piece.begin(), piece.end());
    }
    starts.push_back(code.size());
    for (uint8_t byte : {0x48, 0x31, 0xd2, 0x4c, 0x01, 0xc0, 0xc3}) code.push_back(byte);  // xor; add rax,r8; ret
    // As spread as real code: a 64 KB window holds some 500 probes.
    uint64_t pc = world_.put(code, 65536 + random() % (ProbeWorld::kCodeBytes - 131072));

    // The truth: the same code on the twin itself (GS is not used).
    auto run = [&](uint64_t base) {
      fill(seed + static_cast<unsigned>(round));
      return ProbeWorld::call(pc, base + 256, base + 512, 5, 3);
    };
    uint64_t truth = run(world_.twin);
    Bytes truth_memory = memory();

    std::vector<size_t> order(starts.size() - 1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    bool whole = true;
    size_t expected = 0;
    for (size_t i : order) {
      const uint8_t first = code[starts[i]];
      bool memory_form =
          !(first == 0x90 || (first == 0x0f && code[starts[i] + 1] == 0x92) || first == 0x45 || first == 0x4d);
      if (!memory_form) continue;
      // Refused later, a jump may also have been taken back for its neighbour's sake.
      if (world_.lay(pc + starts[i]) != LayResult::kLaid) ++refused;
      ++laid;
    }
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      const uint8_t first = code[starts[i]];
      bool memory_form =
          !(first == 0x90 || (first == 0x0f && code[starts[i] + 1] == 0x92) || first == 0x45 || first == 0x4d);
      if (!memory_form) continue;
      whole &= world_.sites->patched(pc + starts[i]);
      ++expected;
    }
    if (whole) {
      EXPECT_EQ(run(world_.data), truth) << "round " << round;
      EXPECT_EQ(world_.take_records().size(), expected) << "round " << round;
    } else {
      // Some run where they are: on the open view only, where the probes' GS would miss.
      world_.take_records();
    }
    if (whole) {
      ASSERT_EQ(memory(), truth_memory) << "round " << round;
    }
    EXPECT_EQ(world_.sites->take_back_all(), 0u);
    ASSERT_EQ(world_.bytes(pc, code.size()), code) << "round " << round;
  }
  EXPECT_LT(refused * 10, laid) << "more than a tenth found no place";
  EXPECT_GT(g_counters.probes_relaid.load(), relaid_before);
}

// Every instruction with a base in RAX, RCX or RSP's neighbours: what is saved where.
TEST_F(LibrarySites, AnyBaseAndIndexIsRecorded) {
  for (uint8_t base = 0; base < 16; ++base) {
    if (base == 4) continue;
    for (uint8_t index = 0; index < 16; ++index) {
      if (index == 4 || index == base) continue;
      // push rbx, rbp, r12 to r15; base = rdi, index = rsi; add dword [base+index*2+8], 127; rax = flags
      Bytes code = {0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57};
      // By the stack: rdi and rsi may be wanted for each other.
      code.insert(code.end(), {0x57, 0x56});
      auto pop = [&](uint8_t reg) {
        if (reg >= 8) code.push_back(0x41);
        code.push_back(static_cast<uint8_t>(0x58 | (reg & 7)));
      };
      pop(index);
      pop(base);
      size_t site = code.size();
      code.insert(code.end(), {static_cast<uint8_t>(0x40 | (index >> 3) << 1 | base >> 3), 0x83, 0x44,
                               static_cast<uint8_t>(1 << 6 | (index & 7) << 3 | (base & 7)), 8, 0x7f});
      code.insert(code.end(), {0x9c, 0x58});  // pushfq; pop rax
      code.insert(code.end(), {0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3});
      uint64_t pc = world_.put(code, 16384);
      auto* word = reinterpret_cast<uint32_t*>(world_.twin + 64 + 2 * 20 + 8);
      *word = 0x7fffffc0;
      uint64_t flags = ProbeWorld::call(pc, world_.twin + 64, 20, 0, 0);
      ASSERT_EQ(*word, 0x7fffffc0u + 0x7f);
      ASSERT_EQ(world_.lay(pc + site), LayResult::kLaid) << int{base} << " " << int{index};
      *word = 0x7fffffc0;
      EXPECT_EQ(ProbeWorld::call(pc, world_.data + 64, 20, 0, 0), flags);
      EXPECT_EQ(*word, 0x7fffffc0u + 0x7f);
      auto seen = world_.take_records();
      ASSERT_EQ(seen.size(), 1u);
      EXPECT_EQ(seen[0].address, world_.data + 64 + 40 + 8);
      EXPECT_EQ(seen[0].base, world_.data + 64) << int{base} << " " << int{index};
      // Outside the window: done where it is, no record, flags and registers the same.
      *word = 0x7fffffc0;
      EXPECT_EQ(ProbeWorld::call(pc, world_.twin + 64, 20, 0, 0), flags);
      EXPECT_EQ(*word, 0x7fffffc0u + 0x7f);
      EXPECT_TRUE(world_.take_records().empty());
      EXPECT_EQ(world_.sites->take_back_all(), 0u);
    }
  }
}

TEST_F(LibrarySites, AnUnwatchedThreadMakesNoRecord) {
  uint64_t pc = world_.put({0x8b, 0x47, 0x08, 0x48, 0x31, 0xd2, 0xc3}, 20480);
  ASSERT_EQ(world_.lay(pc), LayResult::kLaid);
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(world_.data), ProbeWorld::kDataBytes, PROT_READ | PROT_WRITE), 0);
  {
    UnwatchedScope unwatched;
    EXPECT_EQ(ProbeWorld::call(pc, world_.data, 0, 0, 0), reinterpret_cast<uint32_t*>(world_.twin)[2]);
  }
  watch_this_thread(0, 0);
  EXPECT_EQ(ProbeWorld::call(pc, world_.data, 0, 0, 0), reinterpret_cast<uint32_t*>(world_.twin)[2]);
  EXPECT_TRUE(world_.take_records().empty());
  watch_this_thread(world_.data, ProbeWorld::kDataBytes);
  ProbeWorld::call(pc, world_.data, 0, 0, 0);
  EXPECT_EQ(world_.take_records().size(), 1u);
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(world_.data), ProbeWorld::kDataBytes, PROT_NONE), 0);
}

// In a signal handler, while the probe that it interrupted makes its record.
TEST_F(LibrarySites, AHandlersProbeLeavesARecordUnderWayAlone) {
  uint64_t pc = world_.put({0x8b, 0x47, 0x08, 0x48, 0x31, 0xd2, 0xc3}, 28672);
  ASSERT_EQ(world_.lay(pc), LayResult::kLaid);
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(world_.data), ProbeWorld::kDataBytes, PROT_READ | PROT_WRITE), 0);
  t_probe.busy = 1;
  ProbeWorld::call(pc, world_.data, 0, 0, 0);
  EXPECT_TRUE(world_.take_records().empty());
  EXPECT_EQ(t_probe.busy, 1);
  t_probe.busy = 0;
  ProbeWorld::call(pc, world_.data, 0, 0, 0);
  EXPECT_EQ(world_.take_records().size(), 1u);
  EXPECT_EQ(t_probe.busy, 0);
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(world_.data), ProbeWorld::kDataBytes, PROT_NONE), 0);
}

// Flags that an instruction reads, and the red zone below RSP.
TEST_F(LibrarySites, FlagsAndTheRedZoneSurvive) {
  // mov [rsp-8], rsi; mov [rsp-128], rdx; cmp rcx, 1; (site) adc eax, [rdi]; with eax = 0;
  // add rax, [rsp-8]; add rax, [rsp-128]; ret
  uint64_t pc = world_.put({0x31, 0xc0, 0x48, 0x89, 0x74, 0x24, 0xf8, 0x48, 0x89, 0x54, 0x24, 0x80, 0x48, 0x83, 0xf9,
                            0x01, 0x13, 0x07, 0x48, 0x03, 0x44, 0x24, 0xf8, 0x48, 0x03, 0x44, 0x24, 0x80, 0xc3},
                           24576);
  ASSERT_EQ(world_.lay(pc + 16), LayResult::kLaid);
  *reinterpret_cast<uint32_t*>(world_.twin) = 1000;
  EXPECT_EQ(ProbeWorld::call(pc, world_.data, 20000, 300000, 0), 321001u);
  EXPECT_EQ(ProbeWorld::call(pc, world_.data, 20000, 300000, 1), 321000u);
}

// Another thread runs the code all the time while it is patched and taken back.
TEST_P(AnySites, PatchedWhileItRuns) {
  // Crosses blocks of 16 bytes at every offset: the int3 way is met too. Its SIGTRAP goes
  // back to the site.
  struct sigaction action = {}, before;
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    auto* uc = static_cast<ucontext_t*>(context);
    auto pc = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]) - 1;
    if (!ProbeWorld::get(GetParam()).sites->trapped_for_us(pc)) abort();
    uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
  };
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  for (uint64_t shift = 0; shift < 16; ++shift) {
    // mov eax,[rdi+8]; add eax,[rdi+12]; mov rdx,[rdi+24]; add eax,edx; ret
    uint64_t pc = world_.put({0x8b, 0x47, 0x08, 0x03, 0x47, 0x0c, 0x48, 0x8b, 0x57, 0x18, 0x01, 0xd0, 0xc3},
                             8192 + 1040 * shift + shift);
    uint64_t twin = world_.twin, gs = world_.twin - world_.data;
    auto* words = reinterpret_cast<uint32_t*>(twin);
    const uint32_t expected = words[2] + words[3] + words[6];
    // The plain view is open meanwhile: without a patch the code reads it.
    ASSERT_EQ(mprotect(reinterpret_cast<void*>(world_.data), ProbeWorld::kDataBytes, PROT_READ | PROT_WRITE), 0);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> wrong{0}, calls{0};
    std::thread runner([&] {
      syscall(SYS_arch_prctl, 0x1001, gs);
      std::vector<uint64_t> own(4096);
      t_probe.cursor = reinterpret_cast<uint64_t>(own.data());
      watch_this_thread(world_.data, ProbeWorld::kDataBytes);
      while (!stop.load()) {
        if (static_cast<uint32_t>(ProbeWorld::call(pc, world_.data, 0, 0, 0)) != expected) ++wrong;
        t_probe.cursor = reinterpret_cast<uint64_t>(own.data());
        ++calls;
      }
    });
    while (calls.load() == 0) std::this_thread::yield();
    for (int i = 0; i < 60; ++i) {
      EXPECT_EQ(world_.lay(pc), LayResult::kLaid);
      EXPECT_EQ(world_.lay(pc + 6), LayResult::kLaid);
      EXPECT_EQ(world_.lay(pc + 3), LayResult::kLaid);
      std::this_thread::yield();
      EXPECT_EQ(world_.sites->take_back_all(), 0u);
    }
    stop = true;
    runner.join();
    EXPECT_EQ(wrong.load(), 0u) << "shift " << shift;
    EXPECT_GT(calls.load(), 0u);
    ASSERT_EQ(mprotect(reinterpret_cast<void*>(world_.data), ProbeWorld::kDataBytes, PROT_NONE), 0);
  }
  sigaction(SIGTRAP, &before, nullptr);
}

}  // namespace
}  // namespace classaccess
