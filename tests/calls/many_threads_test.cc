// Hooks that come and go under threads that call all the time.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/calls/called_library.h"
#include "tests/calls/hooks.h"

namespace classaccess {
namespace {

TEST(NativeCalls, HooksComeAndGoUnderRunningThreads) {
  const int rounds = getenv("CLASSACCESS_FULL") != nullptr ? 10000 : 40;
  std::atomic<bool> go_on{true};
  std::atomic<uint64_t> empties{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      uint64_t calls = 0;
      while (go_on.load(std::memory_order_relaxed)) {
        for (int j = 0; j < 50; ++j) called_empty();
        calls += 50;
        if (called_endbr(5) != 6 || called_rip_relative() != 42 || called_recursion(5) != 5 || !called_is_even(10) ||
            called_varargs(2, 1.5, 2.5) != 4.0 || called_struct(1).words[3] != 4 || called_flags() != 0) {
          ++wrong;
        }
        try {
          called_throw_outer(3);
          ++wrong;
        } catch (int) {
        }
      }
      empties += calls;
    });
  }
  uint64_t counted = 0;
  for (int i = 0; i < rounds; ++i) {
    Hooks hooks({"libcalled_library.so!*"});
    ASSERT_EQ(hooks.error(), "");
    std::this_thread::sleep_for(std::chrono::microseconds(i % 16 * 100));
    hooks.stop();
    // Each time anew, up to the last.
    const std::map<std::string, FunctionTotals> all = hooks.all();
    const auto empty = all.find("called_empty");
    const std::string why = empty != all.end() ? empty->second.refused : "it has no row";
    EXPECT_EQ(why, "") << "round " << i;
    if (!why.empty()) break;
    for (const auto& [name, totals] : all) {
      if (name == "called_empty") counted += totals.count + totals.untimed;
      EXPECT_EQ(totals.refused.find("blocks SIGBUS"), std::string::npos) << name;
    }
  }
  go_on = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(Hooks::under_way(), 0u);
  EXPECT_GT(counted, 0u);
  EXPECT_LE(counted, empties);
}

}  // namespace
}  // namespace classaccess
