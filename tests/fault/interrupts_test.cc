// Signals of others in the middle of traced code, and steps that end in a signal.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/fault/forms.h"
#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

// Fields of the object both sides use: each has counters of its own. A divisor at 512.
constexpr uint64_t kMain = 64, kHandler = 128, kDivisor = 512;

// One access of each kind: emulated, displaced, stepped.
#define ACCESS_EACH_WAY(object, offset)                                      \
  asm volatile(                                                              \
      "addq $1, (%0)\n"                                                      \
      "movq 8(%0), %%xmm1\n paddq %2, %%xmm1\n movq %%xmm1, 8(%0)\n"         \
      "mov $70, %%eax\n xor %%edx, %%edx\n divl (%1)\n addq %%rax, 16(%0)\n" \
      :                                                                      \
      : "r"((object) + (offset)), "r"((object) + kDivisor), "m"(kOne)        \
      : "rax", "rdx", "xmm1", "memory", "cc")

alignas(16) constexpr uint64_t kOne[2] = {1, 0};
constexpr uint64_t kAccesses = 5;  // of ACCESS_EACH_WAY

uint64_t g_object;
std::atomic<uint64_t> g_alarms;

void on_alarm(int) {
  ACCESS_EACH_WAY(g_object, kHandler);
  g_alarms.fetch_add(1, std::memory_order_relaxed);
}

class InterruptsTest : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_WORLD();
    World& world = World::get();
    if (FaultHandler::this_thread() == nullptr) world.add_this_thread();
    g_object = world.make_object(world.box_klass, World::kBoxBytes);
    memset(world.twin(g_object + 16), 0, World::kBoxBytes - 16);
    *reinterpret_cast<uint32_t*>(world.twin(g_object + kDivisor)) = 10;
  }
  void TearDown() override { World::previous = nullptr; }
  uint64_t word(uint64_t offset) { return *reinterpret_cast<uint64_t*>(World::get().twin(g_object + offset)); }
  void expect_sums(uint64_t offset, uint64_t times) {
    EXPECT_EQ(times, word(offset));
    EXPECT_EQ(times, word(offset + 8));
    EXPECT_EQ(7 * times, word(offset + 16));
  }
};

// The handler of a timer touches the heap too: in a handler the kernel's default closes the
// key, so it traps, also between a step's two signals and inside a displaced copy.
void with_alarms(const struct sigaction& action) {
  struct sigaction before;
  sigaction(SIGALRM, &action, &before);
  itimerval every = {{0, 101}, {0, 101}};
  setitimer(ITIMER_REAL, &every, nullptr);
}
void without_alarms() {
  itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  signal(SIGALRM, SIG_DFL);
}

TEST_F(InterruptsTest, ATimerHandlerTouchesTheHeapAtAnyMoment) {
  World& world = World::get();
  Drain drain(world);
  g_alarms = 0;
  ThreadState* state = FaultHandler::this_thread();
  ThreadCounters before = state->counters;
  struct sigaction action {};
  action.sa_handler = on_alarm;
  uint64_t rounds = 0;
  bool denied = true;
  with_alarms(action);
  g_key.deny_here();
  while (g_alarms.load(std::memory_order_relaxed) < 1500 && rounds < 200000) {
    ACCESS_EACH_WAY(g_object, kMain);
    ++rounds;
  }
  denied = g_key.denied_here();
  without_alarms();
  g_key.allow_here();
  uint64_t alarms = g_alarms;
  std::vector<AccessRecord>& records = drain.stop();
  EXPECT_TRUE(denied) << "a step left the heap open";
  EXPECT_GE(alarms, 100u);
  expect_sums(kMain, rounds);
  expect_sums(kHandler, alarms);
  EXPECT_EQ(kAccesses * (rounds + alarms), records.size());
  EXPECT_EQ(rounds + alarms, state->counters.stepped - before.stepped);
  EXPECT_EQ(2 * (rounds + alarms), state->counters.displaced - before.displaced);
  EXPECT_EQ(2 * (rounds + alarms), state->counters.emulated - before.emulated);
}

// Always in the worst moment: the signal is pending while our handler runs (it blocks it), and
// arrives at its return, before the stepped instruction.
TEST_F(InterruptsTest, AStepInsideAStep) {
  World& world = World::get();
  struct sigaction action {
  }, before;
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, &before);
  g_alarms = 0;
  // Reached when the step's trap is nobody's.
  static std::atomic<int> stray;
  stray = 0;
  World::previous = [](int signal, siginfo_t*, ucontext_t* uc) {
    stray += signal == SIGTRAP;
    uc->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
  };
  // The step's own trap handler is not interrupted, so the kernel is asked to send the alarm
  // from inside it: a waiting thread's ring is full until the alarm is pending.
  ThreadState* state = FaultHandler::this_thread();
  for (int i = 0; i < 20; ++i) {
    world.drain();
    AccessRecord filler = {};
    while (state->ring.push(filler)) {
    }
    uint64_t waits = state->counters.waits;
    pid_t tid = state->tid;
    std::thread sender([&] {
      while (*const_cast<volatile uint64_t*>(&state->counters.waits) == waits) std::this_thread::yield();
      tgkill(getpid(), tid, SIGALRM);
      world.drain();
    });
    g_key.deny_here();
    uint32_t quotient;
    asm volatile("mov $70, %%eax\n xor %%edx, %%edx\n divl (%1)\n mov %%eax, %0\n"
                 : "=&r"(quotient)
                 : "r"(g_object + kDivisor)
                 : "rax", "rdx", "memory", "cc");
    bool denied = g_key.denied_here();
    g_key.allow_here();
    sender.join();
    EXPECT_EQ(7u, quotient);
    EXPECT_TRUE(denied);
    EXPECT_EQ(static_cast<uint64_t>(i + 1), g_alarms.load());
    EXPECT_EQ(kAccesses + 1, world.drain().size());
  }
  EXPECT_EQ(0, stray) << "the outer step's trap was forgotten";
  sigaction(SIGALRM, &before, nullptr);
}

// The stepped instruction raises a signal of its own, as HotSpot's division by zero does.
sigjmp_buf g_back;
std::atomic<uint64_t> g_signal_pc;
void on_division(int, siginfo_t*, void* context) {
  g_signal_pc = static_cast<uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  siglongjmp(g_back, 1);
}
void skip_division(int, siginfo_t*, void* context) {
  auto* uc = static_cast<ucontext_t*>(context);
  g_signal_pc = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
  uc->uc_mcontext.gregs[REG_RIP] += 2;  // divl (%rdi)
}

__attribute__((noinline)) void divide(uint64_t divisor) {
  asm volatile(
      "mov %0, %%rdi\n mov $70, %%eax\n xor %%edx, %%edx\n"
      ".globl classaccess_test_divide\nclassaccess_test_divide: divl (%%rdi)\n"
      :
      : "r"(divisor)
      : "rax", "rdx", "rdi", "memory", "cc");
}
extern "C" const char classaccess_test_divide[];

TEST_F(InterruptsTest, ADivisionByZeroRaisesAtItsOwnPc) {
  World& world = World::get();
  for (bool jumps : {false, true}) {
    SCOPED_TRACE(jumps ? "the handler jumps out" : "the handler returns behind it");
    memset(world.twin(g_object + kDivisor), 0, 4);
    struct sigaction action {
    }, before;
    action.sa_sigaction = jumps ? on_division : skip_division;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGFPE, &action, &before);
    g_signal_pc = 0;
    Trace trace = world.trace([&] {
      if (sigsetjmp(g_back, 1) == 0) divide(g_object + kDivisor);
    });
    sigaction(SIGFPE, &before, nullptr);
    EXPECT_EQ(reinterpret_cast<uint64_t>(classaccess_test_divide), g_signal_pc.load());
    EXPECT_EQ(1u, trace.counters.stepped);
    EXPECT_EQ(1u, trace.records.size());
    // And then all is as before, at the same instruction and at others.
    *reinterpret_cast<uint32_t*>(world.twin(g_object + kDivisor)) = 10;
    Trace again = world.trace([&] { divide(g_object + kDivisor); });
    EXPECT_EQ(1u, again.records.size());
    EXPECT_EQ(1u, again.counters.stepped);
    Trace after = world.trace([&] { ACCESS_EACH_WAY(g_object, kMain); });
    EXPECT_EQ(kAccesses, after.records.size());
    EXPECT_EQ(1u, after.counters.stepped);
  }
  expect_sums(kMain, 2);
}

// A breakpoint of the program (or of a debugger) is not the end of a step.
TEST_F(InterruptsTest, ABreakpointGoesToItsOwner) {
  World& world = World::get();
  static std::atomic<int> breakpoints;
  breakpoints = 0;
  World::previous = [](int signal, siginfo_t*, ucontext_t*) { breakpoints += signal == SIGTRAP; };
  // A step that never ended: its instruction raised a signal whose handler jumped out.
  struct sigaction action {
  }, before;
  action.sa_sigaction = on_division;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &action, &before);
  memset(world.twin(g_object + kDivisor), 0, 4);
  Trace trace = world.trace([&] {
    if (sigsetjmp(g_back, 1) == 0) divide(g_object + kDivisor);
    asm volatile("int3");
    asm volatile("movl 16(%0), %%eax\n int3" : : "r"(g_object) : "rax", "memory");
  });
  sigaction(SIGFPE, &before, nullptr);
  EXPECT_EQ(2, breakpoints);
  EXPECT_EQ(2u, trace.records.size());
}

}  // namespace
}  // namespace classaccess::test
