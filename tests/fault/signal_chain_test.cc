#include "agent/fault/signal_chain.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/fault/child.h"

namespace classaccess {
namespace {

using test::ChildEnd;
using test::expect_fine_in_child;
using test::run_in_child;

SignalChain g_chain;
volatile int g_ours, g_theirs;
siginfo_t* volatile g_info;
void* volatile g_context;
volatile bool g_same;
volatile char* g_page;

void pass_on(int, siginfo_t* info, void* context) {
  g_ours = g_ours + 1;
  g_info = info;
  g_context = context;
  g_chain.chain(info, context);
}

void three_arguments(int signal, siginfo_t* info, void* context) {
  g_theirs = g_theirs + 1;
  g_same = signal == SIGSEGV && info == g_info && context == g_context && info->si_addr == const_cast<char*>(g_page) &&
           static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] != 0;
  mprotect(const_cast<char*>(g_page), 4096, PROT_READ | PROT_WRITE);
}

void one_argument(int signal) {
  g_theirs = g_theirs + (signal == SIGSEGV ? 1 : 100);
  mprotect(const_cast<char*>(g_page), 4096, PROT_READ | PROT_WRITE);
}

void make_page() { g_page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }

void set_action(int signal, void (*three)(int, siginfo_t*, void*), void (*one)(int)) {
  struct sigaction action {};
  if (three != nullptr) {
    action.sa_sigaction = three;
    action.sa_flags = SA_SIGINFO;
  } else {
    action.sa_handler = one;
  }
  sigaction(signal, &action, nullptr);
}

TEST(SignalChainTest, APreviousHandlerGetsTheSameSiginfoAndContext) {
  expect_fine_in_child([] {
    make_page();
    set_action(SIGSEGV, three_arguments, nullptr);
    ASSERT_TRUE(g_chain.install(SIGSEGV, pass_on));
    *g_page = 1;
    EXPECT_EQ(1, g_ours);
    EXPECT_EQ(1, g_theirs);
    EXPECT_TRUE(g_same);
    EXPECT_EQ(1, *g_page);
  });
}

TEST(SignalChainTest, AOneArgumentHandlerIsCalledAsOne) {
  expect_fine_in_child([] {
    make_page();
    set_action(SIGSEGV, nullptr, one_argument);
    ASSERT_TRUE(g_chain.install(SIGSEGV, pass_on));
    *g_page = 1;
    EXPECT_EQ(1, g_ours);
    EXPECT_EQ(1, g_theirs);
  });
}

TEST(SignalChainTest, TheDefaultActionKillsWithTheSameSignal) {
  for (int signal : {SIGSEGV, SIGBUS, SIGTRAP}) {
    ChildEnd end = run_in_child([signal] {
      set_action(signal, nullptr, SIG_DFL);
      g_chain.install(signal, pass_on);
      raise(signal);
    });
    EXPECT_FALSE(end.exited);
    EXPECT_EQ(signal, end.code);
  }
  ChildEnd end = run_in_child([] {
    make_page();
    set_action(SIGSEGV, nullptr, SIG_DFL);
    g_chain.install(SIGSEGV, pass_on);
    *g_page = 1;
  });
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(SIGSEGV, end.code) << "a fault, not a sent signal";
}

TEST(SignalChainTest, AnIgnoredSignalIsIgnoredWhenSentAndKillsAsAFault) {
  expect_fine_in_child([] {
    set_action(SIGSEGV, nullptr, SIG_IGN);
    ASSERT_TRUE(g_chain.install(SIGSEGV, pass_on));
    raise(SIGSEGV);
    EXPECT_EQ(1, g_ours);
    EXPECT_TRUE(g_chain.in_front());
  });
  ChildEnd end = run_in_child([] {
    make_page();
    set_action(SIGSEGV, nullptr, SIG_IGN);
    g_chain.install(SIGSEGV, pass_on);
    *g_page = 1;
  });
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(SIGSEGV, end.code);
}

TEST(SignalChainTest, TheKernelHasOurActionAndItsFlags) {
  expect_fine_in_child([] {
    set_action(SIGSEGV, three_arguments, nullptr);
    ASSERT_TRUE(g_chain.install(SIGSEGV, pass_on));
    struct sigaction now;
    ASSERT_EQ(0, sigaction(SIGSEGV, nullptr, &now));
    EXPECT_EQ(pass_on, now.sa_sigaction);
    EXPECT_EQ(SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART,
              now.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART));
    for (int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) EXPECT_FALSE(sigismember(&now.sa_mask, open)) << open;
    for (int held : {SIGALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGQUIT}) EXPECT_TRUE(sigismember(&now.sa_mask, held)) << held;
    g_chain.restore();
    ASSERT_EQ(0, sigaction(SIGSEGV, nullptr, &now));
    EXPECT_EQ(three_arguments, now.sa_sigaction);
  });
}

TEST(SignalChainTest, AReplacementIsSeenAndNotUndone) {
  expect_fine_in_child([] {
    ASSERT_TRUE(g_chain.install(SIGSEGV, pass_on));
    EXPECT_TRUE(g_chain.in_front());
    set_action(SIGSEGV, three_arguments, nullptr);
    EXPECT_FALSE(g_chain.in_front());
    g_chain.restore();
    struct sigaction now;
    ASSERT_EQ(0, sigaction(SIGSEGV, nullptr, &now));
    EXPECT_EQ(three_arguments, now.sa_sigaction);
  });
}

// No handler of this signal was there, so the restorer is our own.
TEST(SignalChainTest, TheOwnRestorerReturns) {
  expect_fine_in_child([] {
    ASSERT_TRUE(g_chain.install(SIGUSR1, [](int, siginfo_t*, void*) { g_ours = g_ours + 1; }));
    for (int i = 0; i < 3; ++i) raise(SIGUSR1);
    EXPECT_EQ(3, g_ours);
  });
}

}  // namespace
}  // namespace classaccess
