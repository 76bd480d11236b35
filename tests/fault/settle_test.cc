// The end of a recording: where a thread's signal handlers go back to, and what is taken from a
// thread that waits.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "agent/base/thread_offset.h"
#include "agent/fault/java_thread.h"
#include "agent/fault/probed_access.h"
#include "agent/fault/signal_frames.h"
#include "tests/fault/world.h"

// The code that is interrupted: until *flag is not 0.
extern "C" void settle_test_spin(const std::atomic<int>* flag);
extern "C" const char settle_test_spin_end[];
asm(R"(
  .text
  .globl settle_test_spin
settle_test_spin:
  cmpl $0, (%rdi)
  je settle_test_spin
  .globl settle_test_spin_end
settle_test_spin_end:
  ret
)");

namespace classaccess::test {
namespace {

class SettleTest : public testing::Test {
 protected:
  void SetUp() override { NEEDS_WORLD(); }
};

bool in_spin(uint64_t pc) {
  return pc >= reinterpret_cast<uint64_t>(&settle_test_spin) && pc < reinterpret_cast<uint64_t>(settle_test_spin_end);
}
bool nowhere(uint64_t) { return false; }

// A handler that says where its stack is and waits.
struct Stop {
  std::atomic<uint64_t> sp{0};
  std::atomic<int> go{0};
  void wait() {
    sp = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    while (go == 0) std::this_thread::yield();
  }
};
Stop g_stops[3];
void await(const Stop& stop) {
  while (stop.sp == 0) std::this_thread::yield();
}

void handle(int signal, int flags) {
  struct sigaction action = {};
  action.sa_flags = flags;
  action.sa_handler = signal == SIGUSR1 ? [](int) { g_stops[0].wait(); } : [](int) { g_stops[1].wait(); };
  ASSERT_EQ(sigaction(signal, &action, nullptr), 0);
}

// One handler inside another, each on either stack.
TEST_F(SettleTest, HandlersGoBackToWhatTheyInterrupted) {
  World::get();
  static char alternate[64 << 10];
  for (int stacks = 0; stacks < 4; ++stacks) {
    for (Stop& stop : g_stops) stop.sp = stop.go = 0;
    handle(SIGUSR1, (stacks & 1) != 0 ? SA_ONSTACK : 0);
    handle(SIGUSR2, (stacks & 2) != 0 ? SA_ONSTACK : 0);
    std::atomic<uint64_t> fs{0};
    std::atomic<int32_t> tid{0};
    std::atomic<int> flag{0};
    std::thread thread([&] {
      stack_t stack = {};
      stack.ss_sp = alternate;
      stack.ss_size = sizeof(alternate);
      sigaltstack(&stack, nullptr);
      tid = current_tid();
      fs = fs_base();
      settle_test_spin(&flag);
      g_stops[2].wait();
    });
    while (fs == 0) std::this_thread::yield();
    // Often still in front of the code, or in a library: sent again.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const pthread_t target = thread.native_handle();
    // Ours have been there and have left; the next frame lies where theirs was, and has no siginfo.
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(FaultHandler::arm_other_thread(tid));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pthread_kill(target, SIGUSR1);
    await(g_stops[0]);
    for (uint64_t known : {uint64_t{0}, fs.load()}) {
      EXPECT_TRUE(handler_goes_back_to(g_stops[0].sp, known, in_spin)) << stacks;
      EXPECT_FALSE(handler_goes_back_to(g_stops[0].sp, known, nowhere));
    }
    pthread_kill(target, SIGUSR2);
    await(g_stops[1]);
    for (uint64_t known : {uint64_t{0}, fs.load()}) {
      EXPECT_TRUE(handler_goes_back_to(g_stops[1].sp, known, in_spin)) << stacks;
    }
    g_stops[1].go = g_stops[0].go = 1;
    flag = 1;
    await(g_stops[2]);
    EXPECT_FALSE(handler_goes_back_to(g_stops[2].sp, fs, in_spin)) << "all have returned";
    g_stops[2].go = 1;
    thread.join();
  }
}

// What our own handler leaves on the stack is no frame; while it is under way it is one.
TEST_F(SettleTest, OurOwnFramesAreMarked) {
  World::get();
  std::atomic<int32_t> tid{0};
  std::atomic<int> flag{0};
  g_stops[2].sp = g_stops[2].go = 0;
  std::thread thread([&] {
    tid = current_tid();
    settle_test_spin(&flag);
    char room[8192];  // that it lies in stays as it was
    asm volatile("" : : "r"(room) : "memory");
    g_stops[2].wait();
  });
  while (tid == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(FaultHandler::arm_other_thread(tid));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  flag = 1;
  await(g_stops[2]);
  EXPECT_FALSE(handler_goes_back_to(g_stops[2].sp, 0, in_spin));
  g_stops[2].go = 1;
  thread.join();

  // As the kernel lays them.
  alignas(16) uint64_t stack[512] = {};
  auto* uc = reinterpret_cast<ucontext_t*>(&stack[2]);
  uc->uc_flags = 7;
  uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uint64_t>(&settle_test_spin));
  uc->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(reinterpret_cast<uint64_t>(&stack[500]));
  uc->uc_mcontext.gregs[REG_CSGSFS] = 0x33;
  uc->uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(&stack[400]);
  const auto sp = reinterpret_cast<uint64_t>(&stack[1]), end = reinterpret_cast<uint64_t>(&stack[510]);
  EXPECT_TRUE(handler_goes_back_to(sp, end, in_spin));
  EXPECT_TRUE(handler_goes_back_to(sp + 8, end, in_spin)) << "the handler has returned, the frame stands";
  EXPECT_FALSE(handler_goes_back_to(sp, end, nowhere));
  mark_frame(uc, FrameMark::kInside);
  EXPECT_TRUE(handler_goes_back_to(sp, end, nowhere));
  mark_frame(uc, FrameMark::kLeft);
  EXPECT_FALSE(handler_goes_back_to(sp, end, in_spin));
}

// A thread that waits when the recording ends keeps no cursor into a buffer that is another's
// next time, and no window.
TEST_F(SettleTest, AThreadThatWaitsIsLetGo) {
  World& world = World::get();
  ASSERT_TRUE(g_probed.create(&world.access, &world.starts));
  std::atomic<ThreadState*> state{nullptr};
  std::atomic<bool> go{false};
  uint64_t before = 0, cursor = 1, window = 1;
  std::thread thread([&] {
    world.add_this_thread();
    before = t_probe.cursor;
    state = FaultHandler::this_thread();
    while (!go) std::this_thread::yield();
    cursor = t_probe.cursor;
    window = t_watched.bytes;
    world.remove_this_thread();
  });
  while (state == nullptr) std::this_thread::yield();
  EXPECT_EQ(before, state.load()->probes.begin);
  g_probed.let_go(state);
  EXPECT_EQ(state.load()->probes.cursor.load(), nullptr);
  go = true;
  thread.join();
  EXPECT_EQ(cursor, 0u);
  EXPECT_EQ(window, 0u);
}

// One that has died without a word: what lies there now stays as it is.
TEST_F(SettleTest, OnlyAThreadsOwnCursorIsTaken) {
  World& world = World::get();
  ASSERT_TRUE(g_probed.create(&world.access, &world.starts));
  world.add_this_thread();
  ThreadState* state = FaultHandler::this_thread();
  const uint64_t somebody_elses = 0x1234567812345678;
  uint64_t memory = somebody_elses;
  for (const uint64_t* at : {static_cast<const uint64_t*>(&memory), reinterpret_cast<const uint64_t*>(16)}) {
    state->probes.cursor.store(at);
    g_probed.let_go(state);
    EXPECT_EQ(memory, somebody_elses);
  }
}

}  // namespace
}  // namespace classaccess::test
