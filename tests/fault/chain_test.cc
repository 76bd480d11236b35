// Faults that are not ours, or turn out not to be: the previous handler sees them as if we
// were not there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

// What the previous handler saw last. It goes on at `resume`.
struct Seen {
  int count, signal, code;
  uint64_t pc, address, rax, rdi;
  bool trap_flag, can_read_heap;
} g_seen;
uint64_t g_resume;
uint64_t g_readable;  // a closed heap word, or 0

void look(int signal, siginfo_t* info, ucontext_t* uc) {
  auto& r = uc->uc_mcontext.gregs;
  ++g_seen.count;
  if (g_seen.count > 8) _exit(8);
  g_seen.signal = signal;
  g_seen.code = info->si_code;
  g_seen.pc = static_cast<uint64_t>(r[REG_RIP]);
  g_seen.address = reinterpret_cast<uint64_t>(info->si_addr);
  g_seen.rax = static_cast<uint64_t>(r[REG_RAX]);
  g_seen.rdi = static_cast<uint64_t>(r[REG_RDI]);
  g_seen.trap_flag = (r[REG_EFL] & 0x100) != 0;
  g_seen.can_read_heap = !g_key.denied_here();
  if (g_readable != 0) (void)*reinterpret_cast<volatile uint64_t*>(g_readable);
  r[REG_RIP] = static_cast<greg_t>(g_resume);
}

// Two instructions at known addresses that touch (%rdi).
extern "C" const char classaccess_test_emulated[], classaccess_test_displaced[], classaccess_test_done[];
__attribute__((noinline)) void touch(uint64_t address, bool displaced) {
  asm volatile(
      "mov %0, %%rdi\n mov $1234, %%eax\n test %b1, %b1\n jnz classaccess_test_displaced\n"
      ".globl classaccess_test_emulated\nclassaccess_test_emulated: movl %%eax, (%%rdi)\n"
      "jmp classaccess_test_done\n"
      ".globl classaccess_test_displaced\nclassaccess_test_displaced: movups %%xmm0, (%%rdi)\n"
      ".globl classaccess_test_done\nclassaccess_test_done:\n"
      :
      : "r"(address), "q"(static_cast<char>(displaced))
      : "rax", "rdi", "memory", "cc");
}
uint64_t pc_of(bool displaced) {
  return reinterpret_cast<uint64_t>(displaced ? classaccess_test_displaced : classaccess_test_emulated);
}

class ChainBase : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_WORLD();
    World& world = World::get();
    memset(&g_seen, 0, sizeof(g_seen));
    g_resume = reinterpret_cast<uint64_t>(classaccess_test_done);
    g_readable = 0;
    World::previous = look;
    page_ = world.armed_end() - 64 * 4096;
    heap_page_ = reinterpret_cast<void*>(page_);
    world.put_array(page_ - 64, world.byte_array, 8000);
    world.starts.set(page_ - 64);
  }
  void TearDown() override { World::previous = nullptr; }
  void expect_at_original_pc(int signal, bool displaced) {
    EXPECT_EQ(1, g_seen.count);
    EXPECT_EQ(signal, g_seen.signal);
    EXPECT_EQ(pc_of(displaced), g_seen.pc);
    EXPECT_EQ(1234u, g_seen.rax);
    EXPECT_FALSE(g_seen.trap_flag);
    EXPECT_TRUE(g_seen.can_read_heap);
  }
  uint64_t page_ = 0;
  void* heap_page_ = nullptr;
};

// Whether the access is one for a displaced copy.
class ChainTest : public ChainBase, public testing::WithParamInterface<bool> {
 protected:
  void expect_original_pc(int signal) { expect_at_original_pc(signal, GetParam()); }
};

// HotSpot's implicit null checks.
TEST_P(ChainTest, ANullPointerIsThePreviousHandlers) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  g_readable = object;
  Trace trace = world.trace([&] {
    for (int i = 0; i < 3; ++i) {
      g_seen.count = 0;
      touch(8, GetParam());
      expect_original_pc(SIGSEGV);
      EXPECT_EQ(8u, g_seen.address);
      EXPECT_EQ(8u, g_seen.rdi);
    }
  });
  EXPECT_TRUE(trace.records.empty());
  EXPECT_EQ(3u, trace.counters.chained);
  EXPECT_EQ(0u, trace.counters.traps);
}

TEST_P(ChainTest, AnUncommittedHeapPageIsThePreviousHandlers) {
  World& world = World::get();
  uint64_t uncommitted = world.armed_end() + World::kOpenBytes + 4096;
  Trace trace = world.trace([&] { touch(uncommitted, GetParam()); });
  expect_original_pc(SIGSEGV);
  EXPECT_EQ(uncommitted, g_seen.address);
  EXPECT_TRUE(trace.records.empty());
}

TEST_P(ChainTest, ASentSignalIsThePreviousHandlers) {
  World& world = World::get();
  World::previous = [](int signal, siginfo_t* info, ucontext_t*) {
    ++g_seen.count;
    g_seen.signal = signal;
    g_seen.code = info->si_code;
  };
  world.trace([&] { raise(GetParam() ? SIGSEGV : SIGTRAP); });
  EXPECT_EQ(1, g_seen.count);
  EXPECT_EQ(GetParam() ? SIGSEGV : SIGTRAP, g_seen.signal);
  EXPECT_EQ(SI_TKILL, g_seen.code);
}

// Both views gone under a closed page: the copy fails first, then the instruction itself, and
// only the latter is told. The page bears the key still, so it traps first.
TEST_F(ChainBase, APageGoneInBothViewsCrashesAtTheOriginalPc) {
  World& world = World::get();
  Trace trace = world.trace([&] {
    mprotect(heap_page_, 4096, PROT_NONE);
    mprotect(world.twin(page_), 4096, PROT_NONE);
    touch(page_ + 16, true);
    mprotect(world.twin(page_), 4096, PROT_READ | PROT_WRITE);
    mprotect(heap_page_, 4096, PROT_READ | PROT_WRITE);
    EXPECT_TRUE(g_key.denied_here());
  });
  expect_at_original_pc(SIGSEGV, true);
  EXPECT_EQ(page_ + 16, g_seen.address);
  EXPECT_EQ(1u, trace.counters.chained);
  // Closed and traced as before.
  Trace after = world.trace([&] { touch(page_ + 16, true); });
  EXPECT_EQ(1u, after.records.size());
}

// The plain view really unmapped: no key there any more.
TEST_P(ChainTest, AnUnmappedPlainPageIsThePreviousHandlers) {
  World& world = World::get();
  Trace trace = world.trace([&] {
    munmap(heap_page_, 4096);
    touch(page_ + 16, GetParam());
  });
  expect_original_pc(SIGSEGV);
  EXPECT_EQ(SEGV_MAPERR, g_seen.code);
  EXPECT_TRUE(trace.records.empty());
  EXPECT_EQ(0, g_twin.commit(page_, 4096));
  EXPECT_EQ(0, g_gate.close_range(page_, page_ + 4096));
}

// The twin alone fails: the copy is given up, the instruction stepped on the plain view.
TEST_F(ChainBase, ACopyThatFailsIsStepped) {
  World& world = World::get();
  void* twin = world.twin(page_);
  static bool given_up = false;  // for the process's life
  Trace trace = world.trace([&] {
    mprotect(twin, 4096, PROT_NONE);
    asm volatile("movups %%xmm0, 16(%0)" : : "r"(page_) : "memory");
    mprotect(twin, 4096, PROT_READ | PROT_WRITE);
    EXPECT_TRUE(g_key.denied_here());
  });
  EXPECT_EQ(0, g_seen.count);
  EXPECT_EQ(given_up ? 0u : 1u, trace.counters.displaced);
  EXPECT_EQ(1u, trace.counters.stepped);
  EXPECT_EQ(1u, trace.records.size()) << "one access, one record";
  given_up = true;
}

TEST_F(ChainBase, AReplacedHandlerIsNoticed) {
  EXPECT_TRUE(FaultHandler::in_front());
  struct sigaction other {
  }, ours;
  other.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &other, &ours);
  EXPECT_FALSE(FaultHandler::in_front());
  sigaction(SIGSEGV, &ours, nullptr);
  EXPECT_TRUE(FaultHandler::in_front());
}

INSTANTIATE_TEST_SUITE_P(Ways, ChainTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& p) { return p.param ? "Displaced" : "Emulated"; });

}  // namespace
}  // namespace classaccess::test
