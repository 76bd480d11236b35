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
    EXPECT_EQ(SA_SIGINFO | SA_NODEFER | SA_RESTART, now.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART));
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

// ---- A handler that comes later ----

void first(int, siginfo_t*, void*) { g_theirs = g_theirs + 1; }

// Ours, twice: entry g passes on to action g.
template <int kEntry>
void entry(int, siginfo_t* info, void* context) {
  g_ours = g_ours + 1;
  g_chain.chain(kEntry, g_chain.called_by_kernel(__builtin_return_address(0)), info, context);
}
constexpr SignalChain::Action kEntries[] = {entry<0>, entry<1>, entry<2>};

struct sigaction g_saved;
volatile int g_later;
void later_passes_on(int signal, siginfo_t* info, void* context) {
  g_later = g_later + 1;
  if (g_later > 10) _exit(10);
  g_saved.sa_sigaction(signal, info, context);
}

void install_later(int flags) {
  struct sigaction action {};
  action.sa_sigaction = later_passes_on;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(SIGSEGV, &action, &g_saved);
}

TEST(SignalChainTest, OneThatPassesOnToUsDoesNotGoRoundInACircle) {
  expect_fine_in_child([] {
    set_action(SIGSEGV, first, nullptr);
    ASSERT_TRUE(g_chain.install(SIGSEGV, kEntries, 3));
    install_later(0);
    EXPECT_FALSE(g_chain.in_front());
    EXPECT_EQ(reinterpret_cast<void*>(later_passes_on), g_chain.retake());
    EXPECT_TRUE(g_chain.in_front());
    EXPECT_EQ(nullptr, g_chain.retake());
    raise(SIGSEGV);
    EXPECT_EQ(1, g_later);
    EXPECT_EQ(1, g_theirs);
    EXPECT_EQ(2, g_ours);  // in front, and where it passes on to
  });
}

TEST(SignalChainTest, WhatItPutsBackIsTheChainAsItWas) {
  expect_fine_in_child([] {
    set_action(SIGSEGV, first, nullptr);
    ASSERT_TRUE(g_chain.install(SIGSEGV, kEntries, 3));
    for (int i = 0; i < 20; ++i) {  // more often than there are entries
      install_later(0);
      g_chain.retake();
      sigaction(SIGSEGV, &g_saved, nullptr);
      EXPECT_TRUE(g_chain.in_front());
      g_later = 0;
      g_theirs = 0;
      raise(SIGSEGV);
      EXPECT_EQ(0, g_later);
      EXPECT_EQ(1, g_theirs);
    }
    install_later(0);
    g_chain.retake();
    raise(SIGSEGV);
    EXPECT_EQ(1, g_later);
    EXPECT_EQ(2, g_theirs);
    g_chain.restore();
    struct sigaction now;
    ASSERT_EQ(0, sigaction(SIGSEGV, nullptr, &now));
    EXPECT_EQ(later_passes_on, now.sa_sigaction) << "without us it would be in front";
  });
}

TEST(SignalChainTest, AnExchangeIsLikeSigactionWithoutUs) {
  expect_fine_in_child([] {
    set_action(SIGSEGV, first, nullptr);
    ASSERT_TRUE(g_chain.install(SIGSEGV, kEntries, 3));
    KernelAction old = {}, wanted = {reinterpret_cast<void*>(later_passes_on), SA_SIGINFO, nullptr, 0};
    g_chain.exchange(nullptr, &old);
    EXPECT_EQ(reinterpret_cast<void*>(first), old.handler);
    g_chain.exchange(&wanted, &old);
    EXPECT_EQ(reinterpret_cast<void*>(first), old.handler);
    EXPECT_FALSE(g_chain.first_behind(0));
    g_saved.sa_sigaction = first;
    raise(SIGSEGV);
    EXPECT_EQ(1, g_ours);
    EXPECT_EQ(1, g_later);
    EXPECT_EQ(1, g_theirs);
    g_chain.exchange(&old, &wanted);
    EXPECT_EQ(reinterpret_cast<void*>(later_passes_on), wanted.handler);
    EXPECT_TRUE(g_chain.first_behind(0));
    EXPECT_TRUE(g_chain.in_front());
  });
}

// Asked for by the program only after ours was there: its own signals are to come on its
// alternate stack, so ours are too.
TEST(SignalChainTest, TheAlternateStackIsUsedIfTheOneBehindUsesIt) {
  for (bool at_once : {true, false}) {
    expect_fine_in_child([at_once] {
      set_action(SIGSEGV, first, nullptr);
      ASSERT_TRUE(g_chain.install(SIGSEGV, kEntries, 3));
      KernelAction wanted = {reinterpret_cast<void*>(later_passes_on), SA_SIGINFO | SA_ONSTACK, nullptr, 0}, old;
      if (at_once) {
        g_chain.exchange(&wanted, &old);
      } else {
        install_later(SA_ONSTACK);
        g_chain.retake();
      }
      struct sigaction now;
      ASSERT_EQ(0, sigaction(SIGSEGV, nullptr, &now));
      EXPECT_NE(0, now.sa_flags & SA_ONSTACK);
      if (!at_once) return;
      g_chain.exchange(&old, nullptr);
      ASSERT_EQ(0, sigaction(SIGSEGV, nullptr, &now));
      EXPECT_EQ(0, now.sa_flags & SA_ONSTACK);
    });
  }
}

volatile bool g_blocked_inside, g_alarm_blocked_inside;
void look_at_mask(int, siginfo_t*, void*) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  g_blocked_inside = sigismember(&mask, SIGSEGV) == 1;
  g_alarm_blocked_inside = sigismember(&mask, SIGALRM) == 1;
}

TEST(SignalChainTest, ALaterHandlerRunsWithTheMaskItAskedFor) {
  for (bool open : {true, false}) {
    expect_fine_in_child([open] {
      set_action(SIGSEGV, first, nullptr);
      ASSERT_TRUE(g_chain.install(SIGSEGV, kEntries, 3));
      KernelAction wanted = {reinterpret_cast<void*>(look_at_mask),
                             SA_SIGINFO | (open ? uint64_t{SA_NODEFER} : uint64_t{0}), nullptr,
                             open ? 0 : signal_bit(SIGALRM)};
      g_chain.exchange(&wanted, nullptr);
      raise(SIGSEGV);
      EXPECT_EQ(!open, g_blocked_inside);
      EXPECT_EQ(!open, g_alarm_blocked_inside);
      look_at_mask(0, nullptr, nullptr);
      EXPECT_FALSE(g_blocked_inside);
    });
  }
}

TEST(SignalChainTest, AOneShotHandlerIsCalledOnce) {
  ChildEnd end = run_in_child([] {
    set_action(SIGSEGV, first, nullptr);
    g_chain.install(SIGSEGV, kEntries, 3);
    KernelAction wanted = {reinterpret_cast<void*>(one_argument), static_cast<uint32_t>(SA_RESETHAND), nullptr, 0};
    g_chain.exchange(&wanted, nullptr);
    make_page();
    *g_page = 1;
    if (g_theirs != 1 || *g_page != 1) _exit(1);
    mprotect(const_cast<char*>(g_page), 4096, PROT_NONE);
    *g_page = 1;
  });
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(SIGSEGV, end.code);
}

// The program believes it to be blocked: its own fault then kills, no handler is asked.
TEST(SignalChainTest, AFaultOfAHiddenBlockedSignalKills) {
  ChildEnd end = run_in_child([] {
    set_action(
        SIGSEGV, [](int, siginfo_t*, void*) { _exit(3); }, nullptr);
    g_chain.install(SIGSEGV, kEntries, 3);
    t_hidden_mask = signal_bit(SIGSEGV);
    make_page();
    *g_page = 1;
  });
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(SIGSEGV, end.code);
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
