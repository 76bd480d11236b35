// What hooked functions do is what they did before, and every call that begins ends.
#include "agent/calls/native/native_calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <thread>

#include "tests/calls/called_library.h"
#include "tests/calls/hooks.h"

extern "C" int called_leaf();

namespace classaccess {
namespace {

constexpr char kAll[] = "libcalled_library.so!*";

TEST(NativeCalls, ShapesOfEntries) {
  auto run = [] {
    std::vector<long> out = {called_leaf() & 0xff,
                             called_leaf_close(),
                             called_rip_relative(),
                             called_endbr(5),
                             called_call_next(),
                             called_branch_back(3),
                             static_cast<long>(called_varargs(4, 1.5, 2.5, 3.0, 4.0)),
                             called_struct(7).words[7],
                             called_static_chain(11),
                             called_flags(),
                             called_by_pointer(called_endbr, 8)};
    return out;
  };
  const std::vector<long> plain = run();
  Hooks hooks({kAll});
  ASSERT_EQ(hooks.error(), "");
  EXPECT_EQ(run(), plain);
  EXPECT_EQ(run(), plain);
  for (const char* name :
       {"called_leaf", "called_rip_relative", "called_endbr", "called_call_next", "called_varargs", "called_struct",
        "called_static_chain", "called_chain_inner", "called_flags", "called_by_pointer"}) {
    FunctionTotals totals = hooks.of(name);
    EXPECT_EQ(totals.refused, "") << name;
    EXPECT_EQ(totals.count, name == std::string("called_endbr") ? 4u : 2u) << name;
    EXPECT_EQ(totals.untimed, 0u) << name;
    EXPECT_EQ(totals.by_ended[0], totals.count) << name;
  }
  EXPECT_EQ(hooks.of("called_branch_back").refused, "branches back into its first bytes");
  EXPECT_NE(hooks.of("called_leaf_close").refused, "");
  EXPECT_EQ(Hooks::under_way(), 0u);
  hooks.stop();
  EXPECT_EQ(run(), plain);
}

TEST(NativeCalls, Recursion) {
  Hooks hooks({kAll});
  EXPECT_EQ(called_recursion(10000), 10000);
  EXPECT_EQ(hooks.of("called_recursion").count, 10001u);
  EXPECT_EQ(Hooks::under_way(), 0u);
}

TEST(NativeCalls, TailCallsAreCounted) {
  Hooks hooks({kAll});
  EXPECT_TRUE(called_is_even(1000));
  FunctionTotals even = hooks.of("called_is_even"), odd = hooks.of("called_is_odd");
  EXPECT_EQ(even.count, 1u);
  EXPECT_EQ(even.count + even.untimed, 501u);
  EXPECT_EQ(odd.untimed, 500u);
  EXPECT_EQ(even.by_ended[0], 1u);  // the tail jumps do not end it
  EXPECT_EQ(Hooks::under_way(), 0u);
}

TEST(NativeCalls, ThrowAndRethrow) {
  Hooks hooks({kAll});
  for (int i = 0; i < 100; ++i) {
    int caught = -1;
    try {
      called_throw_outer(i);
    } catch (int what) {
      caught = what;
    }
    EXPECT_EQ(caught, i);
    EXPECT_EQ(Hooks::under_way(), 0u);
  }
  called_throw_outer(-1);
  for (const char* name : {"called_throw_inner", "called_throw_middle", "called_throw_outer"}) {
    EXPECT_EQ(hooks.of(name).by_ended[1], 100u) << name;
    EXPECT_EQ(hooks.of(name).by_ended[0], 1u) << name;
  }
}

TEST(NativeCalls, ThrowOutOfDeepRecursionAndCatchBetween) {
  Hooks hooks({kAll});
  std::function<int(int)> down = [&](int depth) -> int {
    if (depth == 0) {
      called_throw_outer(5);
      return 0;
    }
    try {
      return down(depth - 1);
    } catch (int what) {
      if (depth % 10 != 0) throw;
      return what;
    }
  };
  EXPECT_EQ(down(100), 5);
  EXPECT_EQ(Hooks::under_way(), 0u);
}

TEST(NativeCalls, Longjmp) {
  Hooks hooks({kAll});
  for (volatile int i = 0; i < 100;) {
    std::jmp_buf back;
    i = i + 1;
    if (setjmp(back) == 0) {
      called_jump_outer(&back);
      ADD_FAILURE() << "came back";
    }
    EXPECT_EQ(Hooks::under_way(), 0u);
  }
  EXPECT_EQ(hooks.of("called_jump_inner").by_ended[2], 100u);
  EXPECT_EQ(hooks.of("called_jump_outer").by_ended[2], 100u);
}

TEST(NativeCalls, PthreadExit) {
  Hooks hooks({kAll});
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    called_exit_thread();
                    return nullptr;
                  },
                  nullptr),
              0);
    pthread_join(thread, nullptr);
  }
  EXPECT_EQ(hooks.of("called_exit_thread").by_ended[2], 10u);
  EXPECT_EQ(Hooks::under_way(), 0u);
}

struct Coroutine {
  ucontext_t self, back;
  std::vector<char> stack = std::vector<char>(64 << 10);
  int steps = 0;
};
void switch_back(void* argument) {
  auto* c = static_cast<Coroutine*>(argument);
  swapcontext(&c->self, &c->back);
}
void run_coroutine(unsigned low, unsigned high) {
  auto* c = reinterpret_cast<Coroutine*>(static_cast<uint64_t>(high) << 32 | low);
  for (int i = 0; i < 10; ++i) {
    called_switch_stack(switch_back, c);
    ++c->steps;
  }
}

TEST(NativeCalls, Coroutines) {
  Hooks hooks({kAll});
  Coroutine all[3];
  for (Coroutine& c : all) {
    getcontext(&c.self);
    c.self.uc_stack = {c.stack.data(), 0, c.stack.size()};
    c.self.uc_link = &c.back;
    auto at = reinterpret_cast<uint64_t>(&c);
    makecontext(&c.self, reinterpret_cast<void (*)()>(run_coroutine), 2, static_cast<unsigned>(at),
                static_cast<unsigned>(at >> 32));
  }
  for (int round = 0; round < 11; ++round) {
    for (Coroutine& c : all) swapcontext(&c.back, &c.self);
    called_empty();
  }
  for (Coroutine& c : all) EXPECT_EQ(c.steps, 10);
  EXPECT_EQ(hooks.of("called_switch_stack").by_ended[0], 30u);
  EXPECT_EQ(hooks.of("called_empty").by_ended[0], 11u);
  EXPECT_EQ(Hooks::under_way(), 0u);
}

TEST(NativeCalls, Backtrace) {
  void *plain[64], *hooked[64];
  int without = called_backtrace(plain, 64);
  Hooks hooks({kAll});
  int with = called_backtrace(hooked, 64);
  // One frame more, the trampoline's; the outer ones are the same.
  ASSERT_EQ(with, without + 1);
  for (int i = 3; i < without; ++i) EXPECT_EQ(hooked[i + 1], plain[i]) << i;
}

TEST(NativeCalls, Fork) {
  Hooks hooks({kAll});
  pid_t child = fork();
  if (child == 0) _exit(called_recursion(100) == 100 && called_leaf() != 0 ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(NativeCalls, SpawnAndVfork) {
  Hooks hooks({kAll, "libc.so.6!*exec*", "libc.so.6!posix_spawn*", "libc.so.6!_exit", "libc.so.6!sig*",
               "libc.so.6!system", "libc.so.6!vfork"});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(system("exit 3"), 3 << 8);
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  called_empty();
  EXPECT_EQ(hooks.of("vfork").refused, "returns more than once, or remembers its return address");
}

TEST(NativeCalls, LibrariesComeAndGo) {
  Hooks hooks({"libcalled_later.so!*"});
  for (int i = 0; i < 3; ++i) {
    void* library = dlopen(CALLED_LATER, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    hook_new_libraries();
    auto leaf = reinterpret_cast<int (*)(int)>(dlsym(library, "called_endbr"));
    for (volatile int j = 0; j < 10;) {
      EXPECT_EQ(leaf(5), 6);
      j = j + 1;
    }
    dlclose(library);
    hook_new_libraries();
  }
  uint64_t rows = 0, later = 0;
  for (uint32_t id = g_first_call_function; id < g_call_functions.end(); ++id) {
    if (std::string(g_call_functions.row(id).name) != "called_endbr") continue;
    ++rows;
    later += g_call_functions.row(id).loaded == Loaded::kLater;
  }
  EXPECT_EQ(rows, 3u);
  EXPECT_EQ(later, 3u);
  EXPECT_EQ(hooks.of("called_endbr").count, 30u);
}

TEST(NativeCalls, ThreadsThatEnd) {
  Hooks hooks({kAll});
  for (int i = 0; i < 20; ++i) std::thread([] { EXPECT_EQ(called_recursion(10), 10); }).join();
  EXPECT_EQ(hooks.of("called_recursion").count, 220u);
  EXPECT_EQ(Hooks::under_way(), 0u);
}

}  // namespace
}  // namespace classaccess
