// A fault in our own text that nothing recovers is named before the program's handler gets it. Once in a process, so
// the test needs one of its own, as ctest gives each.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

extern "C" const char classaccess_test_behind[];

void go_on_behind(int, siginfo_t*, ucontext_t* uc) {
  uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uint64_t>(classaccess_test_behind));
}

__attribute__((noinline)) void touch(uint64_t address) {
  asm volatile("movl (%0), %%eax\n.globl classaccess_test_behind\nclassaccess_test_behind:" ::"r"(address)
               : "rax", "memory");
}

std::string said_of(uint64_t address) {
  testing::internal::CaptureStderr();
  touch(address);
  return testing::internal::GetCapturedStderr();
}

// On a stack of its own whose end cannot be touched.
void* touch_guard(void* guard) {
  touch(reinterpret_cast<uint64_t>(guard));
  return nullptr;
}

TEST(OwnFault, IsNamedOnceAndTheStacksEndIsNone) {
  NEEDS_WORLD();
  World::get();
  World::previous = go_on_behind;
  constexpr size_t kStack = 64 << 10;
  void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory, 4096, PROT_NONE), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, static_cast<char*>(memory) + 4096, kStack - 4096), 0);
  testing::internal::CaptureStderr();
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, touch_guard, memory), 0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  std::string said = said_of(0x10);
  EXPECT_EQ(said.rfind("classaccess: the agent's own code has failed: SIGSEGV at +0x", 0), 0u) << said;
  EXPECT_NE(said.find(", address 0x10, version "), std::string::npos) << said;
  EXPECT_EQ(said_of(0x10), "");
  World::previous = nullptr;
}

}  // namespace
}  // namespace classaccess::test
