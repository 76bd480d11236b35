// What the page access model costs: ns of processor time for each switch from page to page, beside two mprotect
// calls and an empty SIGSEGV handler, interleaved round by round in one process, and for each access of a
// page that is open, beside the same loop with nothing closed.
//
// Prints the medians. `mprotect`: the floor. `sequential`: 1,000 pages, none has a key when it is touched.
// `back`: four pages in turn, which keep their keys. `process`: as sequential, without page keys.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "agent/pages/open_pages.h"
#include "agent/pages/page_trap.h"
#include "tests/fault/world.h"

namespace classaccess {
namespace {

using test::World;

constexpr uint64_t kPages = 1000, kPageBytes = 4096;
char* g_plain;
char* g_open_page;

double cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// The floor: a private handler for a mapping of our own, which is closed by mprotect. World's previous handler.
void on_plain_fault(int, siginfo_t* info, ucontext_t*) {
  auto* page = reinterpret_cast<char*>(reinterpret_cast<uint64_t>(info->si_addr) & ~(kPageBytes - 1));
  if (g_open_page != nullptr) mprotect(g_open_page, kPageBytes, PROT_NONE);
  mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
  g_open_page = page;
}

void touch(const volatile char* at) { (void)*at; }

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

template <typename F>
double traced(int touches, F&& page_of) {
  World& world = World::get();
  uint64_t low = world.vm.layout.heap_low;
  double begin = 0, end = 0;
  world.trace([&] {
    begin = cpu_ns();
    for (int i = 0; i < touches; ++i) touch(reinterpret_cast<char*>(low + page_of(i) * kPageBytes));
    end = cpu_ns();
  });
  return (end - begin) / touches;
}

void start(uint32_t keys) {
  World& world = World::get();
  uint64_t low = world.vm.layout.heap_low;
  g_gate.close_range(low, world.armed_end());
  OpenPages::Choice choice;
  choice.keys = keys;
  choice.traps_without_key = 0;
  if (!g_open_pages.create(low, g_armed.high(), choice)) abort();
}

int run(int touches, int rounds) {
  if (World::unsupported()[0] != '\0') {
    printf("page_switch: skipped, %s\n", World::unsupported());
    return 0;
  }
  World& world = World::get();
  world.add_this_thread();
  enable_page_trap(&world.access);
  World::previous = on_plain_fault;
  uint32_t keys = g_key.alloc_page_keys();
  int fd = memfd_create("page_switch", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, World::kArmedBytes) != 0) return 1;
  void* plain = mmap(nullptr, World::kArmedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (plain == MAP_FAILED) return 1;
  g_plain = static_cast<char*>(plain);
  for (uint64_t at = 0; at < World::kArmedBytes; at += kPageBytes) {
    g_plain[at] = 1;
    *world.twin(world.vm.layout.heap_low + at) = 1;
    touch(reinterpret_cast<char*>(world.vm.layout.heap_low + at));
  }
  mprotect(g_plain, World::kArmedBytes, PROT_NONE);
  auto in_order = [](int i) { return static_cast<uint64_t>(i) % kPages; };
  auto back = [](int i) { return static_cast<uint64_t>(i) % 4 * 7; };
  std::vector<double> floor, sequential, going_back, process, open, untraced;
  for (int r = 0; r < rounds; ++r) {
    double begin = cpu_ns();
    for (int i = 0; i < touches; ++i) touch(g_plain + in_order(i) * kPageBytes);
    floor.push_back((cpu_ns() - begin) / touches);
    start(keys);
    sequential.push_back(traced(touches, in_order));
    going_back.push_back(traced(touches, back));
    start(0);
    process.push_back(traced(touches, in_order));
    constexpr int kInside = 10000000;
    open.push_back(traced(kInside, [](int) { return 3ull; }));
    begin = cpu_ns();
    for (int i = 0; i < kInside; ++i) touch(world.twin(world.vm.layout.heap_low + 3 * kPageBytes));
    untraced.push_back((cpu_ns() - begin) / kInside);
  }
  printf("page_switch_mprotect_ns %.0f\n", median(floor));
  printf("page_switch_sequential_ns %.0f\n", median(sequential));
  printf("page_switch_back_ns %.0f\n", median(going_back));
  printf("page_switch_process_ns %.0f\n", median(process));
  printf("page_open_access_ns %.2f\n", median(open));
  printf("page_untraced_access_ns %.2f\n", median(untraced));
  return 0;
}

}  // namespace
}  // namespace classaccess

int main(int argc, char** argv) {
  // Below the ring's capacity: nobody drains while the clock runs.
  int touches = argc > 1 ? atoi(argv[1]) : 4000;
  int rounds = argc > 2 ? atoi(argv[2]) : 15;
  return classaccess::run(touches, rounds);
}
