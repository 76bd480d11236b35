// What a timed call costs and says: functions that take 2 ns, 20 ns, 200 ns and 2 us.
//   call_bench            table: plain, hooked and reported ns a call
//   call_bench plain N    calls an empty function N times, for another tool to trace
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "agent/calls/call_clock.h"
#include "tests/calls/called_library.h"
#include "tests/calls/hooks.h"

namespace classaccess {
namespace {

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The best of some rounds, ns a call.
double plain_cost(uint64_t iterations, int calls) {
  double best = 1e18;
  for (int round = 0; round < 20; ++round) {
    double start = now_ns();
    for (int i = 0; i < calls; ++i) called_spin(iterations);
    best = std::min(best, (now_ns() - start) / calls);
  }
  return best;
}

int run() {
  start_call_clock();
  const double ns_a_tick = static_cast<double>(call_ns(uint64_t{1} << 32)) / static_cast<double>(uint64_t{1} << 32);
  printf("%10s %10s %10s %12s %12s\n", "iterations", "plain ns", "hooked ns", "reported ns", "cost ns");
  for (uint64_t iterations : {2, 50, 550, 5600}) {
    const int calls = static_cast<int>(2000000 / (iterations + 20));
    double plain = plain_cost(iterations, calls);
    double hooked = 1e18, reported = 1e18;
    Hooks hooks({"libcalled_library.so!called_spin"});
    if (!hooks.error().empty()) return printf("%s\n", hooks.error().c_str()), 1;
    for (int round = 0; round < 20; ++round) {
      FunctionTotals before = hooks.of("called_spin");
      double start = now_ns();
      for (int i = 0; i < calls; ++i) called_spin(iterations);
      hooked = std::min(hooked, (now_ns() - start) / calls);
      FunctionTotals after = hooks.of("called_spin");
      reported = std::min(reported, ns_a_tick * static_cast<double>(after.total - before.total) / calls);
    }
    printf("%10lu %10.1f %10.1f %12.1f %12.1f\n", iterations, plain, hooked, reported, hooked - plain);
  }
  uint64_t start = call_ticks();
  for (int i = 0; i < 1000000; ++i) call_ticks();
  printf("clock read %.1f ns; own cost inside %.1f ns, whole %.1f ns\n",
         ns_a_tick * static_cast<double>(call_ticks() - start) / 1e6,
         ns_a_tick * static_cast<double>(g_native_call_cost.inside),
         ns_a_tick * static_cast<double>(g_native_call_cost.whole));
  return 0;
}

}  // namespace
}  // namespace classaccess

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "plain") == 0) {
    const int calls = atoi(argv[2]);
    double start = classaccess::now_ns();
    for (int i = 0; i < calls; ++i) called_empty();
    printf("%.1f\n", (classaccess::now_ns() - start) / calls);
    return 0;
  }
  return classaccess::run();
}
