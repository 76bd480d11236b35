// Several threads: exact counts, rings that fill, threads that are none of ours.
#include <asm/prctl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "agent/fault/java_thread.h"
#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

class ThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_WORLD();
    World::get().drain();
  }
  void TearDown() override {
    if (World::unsupported()[0] != '\0') return;
    World& world = World::get();
    world.drain();
    world.threads.for_each([&](ThreadState& state) {
      if (state.phase.load() == ThreadPhase::kEnded) world.threads.recycle(&state);
    });
  }
};

TEST_F(ThreadsTest, FourThreadsAddToOneObject) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  uint64_t field = object + 64, vector = object + 128;
  memset(world.twin(field), 0, 128);
  constexpr uint64_t kThreads = 4, kAdds = 4000;
  uint64_t traps[kThreads] = {}, displaced[kThreads] = {};
  Drain drain(world);
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      world.add_this_thread();
      ThreadState* state = FaultHandler::this_thread();
      for (++ready; ready < static_cast<int>(kThreads);) {
      }
      g_key.deny_here();
      for (uint64_t i = 0; i < kAdds; ++i) {
        asm volatile(
            "lock addq $1, (%0)\n"                          // emulated
            "1: movq 8(%0), %%rax\n lea 3(%%rax), %%rdx\n"  // a CAS loop
            "lock cmpxchgq %%rdx, 8(%0)\n jnz 1b\n"
            "movups %%xmm0, (%1)\n"  // displaced
            :
            : "r"(field), "r"(vector + 16 * t)
            : "rax", "rdx", "memory", "cc");
      }
      g_key.allow_here();
      traps[t] = state->counters.traps;
      displaced[t] = state->counters.displaced;
      world.remove_this_thread();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<AccessRecord>& records = drain.stop();
  auto* words = reinterpret_cast<uint64_t*>(world.twin(field));
  EXPECT_EQ(kThreads * kAdds, words[0]);
  EXPECT_EQ(3 * kThreads * kAdds, words[1]);
  uint64_t adds = 0, stores = 0, all = 0;
  for (const AccessRecord& r : records) {
    adds += r.address == field && r.op == Op::kRmw;
    stores += r.op == Op::kStore && r.size == 16;
    EXPECT_EQ(object, r.object);
  }
  for (uint64_t t = 0; t < kThreads; ++t) {
    all += traps[t];
    EXPECT_EQ(kAdds, displaced[t]);
  }
  EXPECT_EQ(kThreads * kAdds, adds);
  EXPECT_EQ(kThreads * kAdds, stores);
  EXPECT_EQ(all, records.size()) << "a record for each trap";
}

TEST_F(ThreadsTest, AFullRingWaitsAndLosesNothing) {
  World& world = World::get();
  constexpr int kLoads = 3 * SpscRing::kCapacity;
  uint64_t array = world.make_array(world.int_array, kLoads, 4);
  world.add_this_thread();
  ThreadState* state = FaultHandler::this_thread();
  const uint64_t waits = state->counters.waits;
  // Nobody drains before the ring is full, and then slowly.
  std::optional<Drain> drain;
  std::thread late([&] {
    while (*const_cast<volatile uint64_t*>(&state->counters.waits) == waits) std::this_thread::yield();
    drain.emplace(world, 5000);
  });
  g_key.deny_here();
  for (uint64_t i = 0; i < kLoads; ++i) {
    asm volatile("movl 16(%0,%1,4), %%eax" : : "r"(array), "r"(i) : "rax", "memory");
  }
  g_key.allow_here();
  late.join();
  EXPECT_EQ(0u, state->counters.dropped);
  std::vector<AccessRecord>& records = drain->stop();
  ASSERT_EQ(static_cast<size_t>(kLoads), records.size());
  for (uint64_t i = 0; i < kLoads; ++i) ASSERT_EQ(array + 16 + 4 * i, records[i].address);
  world.remove_this_thread();
}

// The sink has failed while a thread waits: it goes on, and says what it lost.
TEST_F(ThreadsTest, AClosedRecordingFreesAWaitingThread) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  std::atomic<bool> done{false};
  uint64_t dropped = 0, waits = 0;
  bool denied_after = true;
  std::atomic<ThreadState*> state{nullptr};
  std::thread thread([&] {
    world.add_this_thread();
    state = FaultHandler::this_thread();
    g_key.deny_here();
    for (uint32_t i = 0; i < SpscRing::kCapacity + 10; ++i) {
      asm volatile("movl 16(%0), %%eax" : : "r"(object) : "rax", "memory");
    }
    denied_after = g_key.denied_here();
    g_key.allow_here();
    dropped = state.load()->counters.dropped;
    waits = state.load()->counters.waits;
    done = true;
    world.remove_this_thread();
  });
  while (state == nullptr || state.load()->ring.pending() < SpscRing::kCapacity) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(done) << "it waits";
  g_recording.store(RecordingState::kClosed);
  thread.join();
  g_recording.store(RecordingState::kOn);
  EXPECT_EQ(1u, dropped) << "the one that waited; its next trap opened the key";
  EXPECT_GT(waits, 0u);
  EXPECT_FALSE(denied_after);
  EXPECT_EQ(SpscRing::kCapacity, world.drain().size());
}

// Runs `body` on a thread of its own with the heap closed for it: what it read from
// `object` + 16, and whether the heap is closed for it still.
struct Outsider {
  uint32_t value = 0;
  bool denied = true;
};
template <typename Prepare>
Outsider load_on_a_thread(uint64_t object, Prepare&& prepare) {
  World& world = World::get();
  Outsider result;
  std::thread([&] {
    prepare();
    g_key.deny_here();
    asm volatile("movl 16(%1), %0" : "=r"(result.value) : "r"(object) : "memory");
    result.denied = g_key.denied_here();
    g_key.allow_here();
    world.remove_this_thread();
  }).join();
  return result;
}

TEST_F(ThreadsTest, ThreadsThatAreNoJavaThreadsAreLetPass) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  world.vm.put_heap(object, 16, uint32_t{77});
  uint64_t before = g_counters.foreign_opened.load();
  Outsider seen = load_on_a_thread(object, [] {});
  EXPECT_EQ(77u, seen.value);
  EXPECT_FALSE(seen.denied);
  EXPECT_EQ(before + 1, g_counters.foreign_opened.load());
  EXPECT_TRUE(world.drain().empty());
}

TEST_F(ThreadsTest, AfterTheRecordingThreadsAreLetPass) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  world.vm.put_heap(object, 16, uint32_t{78});
  g_recording.store(RecordingState::kClosed);
  Outsider seen = load_on_a_thread(object, [&] { world.add_this_thread(); });
  g_recording.store(RecordingState::kOn);
  EXPECT_EQ(78u, seen.value);
  EXPECT_FALSE(seen.denied);
  EXPECT_TRUE(world.drain().empty());
}

TEST_F(ThreadsTest, ExcludedThreadsAreLetPassUndecidedOnesRecorded) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  world.vm.put_heap(object, 16, uint32_t{79});
  Outsider seen = load_on_a_thread(object, [&] {
    world.add_this_thread();
    FaultHandler::this_thread()->choice.store(ThreadChoice::kExcluded);
  });
  EXPECT_EQ(79u, seen.value);
  EXPECT_FALSE(seen.denied);
  EXPECT_TRUE(world.drain().empty());
  world.access.filter_threads = true;
  seen = load_on_a_thread(object, [&] { world.add_this_thread(); });
  world.access.filter_threads = false;
  EXPECT_EQ(79u, seen.value);
  EXPECT_TRUE(seen.denied);
  EXPECT_EQ(1u, world.drain().size());
}

TEST_F(ThreadsTest, ARetiredThreadIsNotRecorded) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  world.vm.put_heap(object, 16, uint32_t{80});
  Outsider seen = load_on_a_thread(object, [&] {
    world.add_this_thread();
    FaultHandler::retire_this_thread();
  });
  EXPECT_EQ(80u, seen.value);
  EXPECT_FALSE(seen.denied);
  EXPECT_TRUE(world.drain().empty());
}

TEST_F(ThreadsTest, AnotherThreadIsArmedByASignal) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  std::atomic<int32_t> tid{0};
  bool armed = false;
  std::thread thread([&] {
    world.add_this_thread();
    tid = current_tid();
    for (int i = 0; i < 5000 && !g_key.denied_here(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    armed = g_key.denied_here();
    asm volatile("movl 16(%0), %%eax" : : "r"(object) : "rax", "memory");
    g_key.allow_here();
    world.remove_this_thread();
  });
  while (tid == 0) std::this_thread::yield();
  EXPECT_TRUE(FaultHandler::arm_other_thread(tid));
  thread.join();
  EXPECT_TRUE(armed);
  EXPECT_EQ(1u, world.drain().size());
  // The kernel's thread ends a little after the join.
  bool gone = false;
  for (int i = 0; i < 2000 && !gone; ++i) {
    gone = !FaultHandler::arm_other_thread(tid);
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(gone);
}

// A program that uses GS for itself: its base is left alone.
TEST_F(ThreadsTest, AGsBaseInUseIsSteppedOver) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  world.vm.put_heap(object, 64, uint64_t{0x1234});
  uint64_t mine[2] = {11, 12}, seen = 0, base_before = 0, base_after = 0, loaded = 0;
  ThreadCounters counters;
  std::thread([&] {
    world.add_this_thread();
    ThreadState* state = FaultHandler::this_thread();
    syscall(SYS_arch_prctl, ARCH_SET_GS, mine);
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base_before);
    g_key.deny_here();
    asm volatile("movq 64(%2), %%xmm0\n movq %%xmm0, %0\n movq %%gs:8, %1\n"
                 : "=&r"(loaded), "=&r"(seen)
                 : "r"(object)
                 : "xmm0", "memory");
    g_key.allow_here();
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base_after);
    counters = state->counters;
    world.remove_this_thread();
  }).join();
  EXPECT_EQ(0x1234u, loaded);
  EXPECT_EQ(12u, seen);
  EXPECT_EQ(reinterpret_cast<uint64_t>(mine), base_before);
  EXPECT_EQ(base_before, base_after);
  EXPECT_EQ(1u, counters.stepped);
  EXPECT_EQ(0u, counters.displaced);
  EXPECT_EQ(1u, world.drain().size());
}

TEST_F(ThreadsTest, StatesAreReusedWithNewIds) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  uint32_t last = 0;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      world.add_this_thread();
      ThreadState* state = FaultHandler::this_thread();
      ASSERT_NE(nullptr, state);
      EXPECT_GT(state->thread_id, last);
      last = state->thread_id;
      EXPECT_EQ(0u, state->counters.traps);
      g_key.deny_here();
      asm volatile("movl 16(%0), %%eax" : : "r"(object) : "rax", "memory");
      g_key.allow_here();
      world.remove_this_thread();
    }).join();
    EXPECT_EQ(1u, world.drain().size());
    world.threads.for_each([&](ThreadState& state) {
      if (state.phase.load() == ThreadPhase::kEnded) world.threads.recycle(&state);
    });
  }
}

}  // namespace
}  // namespace classaccess::test
