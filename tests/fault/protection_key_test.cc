#include "agent/protect/protection_key.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>
#include <thread>

#include "agent/protect/heap_gate.h"
#include "tests/fault/child.h"

namespace classaccess {
namespace {

constexpr size_t kPage = 4096;

// What the handler does with the frame of a fault.
enum class Edit { kAllow, kDenyOther };
ProtectionKey* g_one;
ProtectionKey* g_other;
volatile int g_faults;
volatile bool g_edited;
volatile bool g_denied_in_handler;

void on_fault(int, siginfo_t* info, void* context) {
  g_faults = g_faults + 1;
  if (g_faults > 3) _exit(9);
  g_denied_in_handler = g_one->denied_here();
  g_edited =
      info->si_code == 4 && g_one->allow_in_frame(context) && (g_other == nullptr || g_other->deny_in_frame(context));
}

class ProtectionKeyTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* why = key_.alloc();
    if (why[0] != '\0') GTEST_SKIP() << why;
    page_ =
        static_cast<volatile int*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(0, key_.tag(reinterpret_cast<uint64_t>(page_), kPage));
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    g_one = &key_;
    g_other = nullptr;
    g_faults = 0;
    g_edited = false;
  }
  void TearDown() override {
    if (!key_.allocated()) return;
    sigaction(SIGSEGV, &before_, nullptr);
    key_.allow_here();
    munmap(const_cast<int*>(page_), kPage);
    key_.release();
  }
  ProtectionKey key_;
  volatile int* page_ = nullptr;
  struct sigaction before_ {};
};

TEST_F(ProtectionKeyTest, AHandlerAllowsTheInterruptedThread) {
  *page_ = 41;
  EXPECT_FALSE(key_.denied_here());
  EXPECT_EQ(0, g_faults);
  key_.deny_here();
  EXPECT_TRUE(key_.denied_here());
  int got = *page_;
  EXPECT_EQ(41, got);
  EXPECT_EQ(1, g_faults);
  EXPECT_TRUE(g_edited);
  EXPECT_TRUE(g_denied_in_handler) << "the kernel's default denies every key but 0";
  EXPECT_FALSE(key_.denied_here());
  *page_ = 42;
  EXPECT_EQ(1, g_faults);
}

TEST_F(ProtectionKeyTest, AHandlerDeniesTheInterruptedThread) {
  ProtectionKey other;
  ASSERT_STREQ("", other.alloc());
  g_other = &other;
  EXPECT_FALSE(other.denied_here());
  key_.deny_here();
  (void)*page_;
  EXPECT_EQ(1, g_faults);
  EXPECT_TRUE(other.denied_here());
  EXPECT_FALSE(key_.denied_here());
  other.allow_here();
  other.release();
}

TEST_F(ProtectionKeyTest, StoresFaultToo) {
  key_.deny_here();
  *page_ = 5;
  EXPECT_EQ(1, g_faults);
  EXPECT_EQ(5, *page_);
}

TEST_F(ProtectionKeyTest, RightsAreThoseOfOneThreadAndInherited) {
  bool denied_there = true, inherited = false;
  std::thread([&] { denied_there = key_.denied_here(); }).join();
  EXPECT_FALSE(denied_there);
  std::thread([&] {
    key_.deny_here();
    std::thread([&] { inherited = key_.denied_here(); }).join();
  }).join();
  EXPECT_TRUE(inherited);
  EXPECT_FALSE(key_.denied_here());
}

// A frame whose XSAVE image holds no PKRU must be refused, not written to.
TEST_F(ProtectionKeyTest, AFrameWithoutPkruIsRefused) {
  ucontext_t context;
  memset(&context, 0, sizeof(context));
  EXPECT_FALSE(key_.allow_in_frame(&context));
  alignas(64) static char image[8192];
  context.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(image);
  EXPECT_FALSE(key_.deny_in_frame(&context));
  const uint32_t magic = 0x46505853;
  memcpy(image + 464, &magic, 4);
  EXPECT_FALSE(key_.deny_in_frame(&context));
  for (size_t i = 512; i < sizeof(image); ++i) ASSERT_EQ(0, image[i]) << i;
}

TEST(AgentScopeTest, OpensTheHeapAndRestores) {
  test::expect_fine_in_child([] {
    const char* why = g_gate.choose(HeapGate::BackEnd::kPkey);
    if (why[0] != '\0') return;
    g_key.deny_here();
    {
      AgentScope open;
      EXPECT_TRUE(open.was_armed());
      EXPECT_FALSE(g_key.denied_here());
      EXPECT_EQ(1u, t_agent_depth);
      {
        AgentScope inner;
        EXPECT_FALSE(inner.was_armed());
      }
      EXPECT_FALSE(g_key.denied_here());
    }
    EXPECT_TRUE(g_key.denied_here());
    EXPECT_EQ(0u, t_agent_depth);
    {
      AgentScope open;
      open.leave(false);
      EXPECT_FALSE(g_key.denied_here()) << "leave(false): stays open";
    }
    EXPECT_FALSE(g_key.denied_here());
  });
}

}  // namespace
}  // namespace classaccess
