// Pages opened for one access with mprotect.
#include "agent/fault/page_windows.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/base/counters.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "tests/fault/child.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 64;

bool readable(uint64_t address) {
  int fds[2];
  if (pipe(fds) != 0) return false;
  bool ok = write(fds[1], reinterpret_cast<const void*>(address), 1) == 1;
  close(fds[0]);
  close(fds[1]);
  return ok;
}

// A closed heap of kPages pages; the last one is not armed.
template <typename Body>
void with_heap(Body&& body) {
  test::expect_fine_in_child([&] {
    void* memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto low = reinterpret_cast<uint64_t>(memory);
    ASSERT_STREQ("", g_gate.choose(HeapGate::BackEnd::kMprotect));
    ASSERT_TRUE(g_armed.create(low, low + kPages * kPage));
    ASSERT_EQ(0, g_gate.close_range(low, low + (kPages - 1) * kPage));
    g_gate.close_all();
    body(low);
  });
}

TEST(PageWindows, OpensAndClosesWhatIsArmed) {
  with_heap([](uint64_t low) {
    PageWindows windows;
    EXPECT_FALSE(readable(low + kPage));
    windows.open(low + kPage + 8);
    EXPECT_TRUE(readable(low + kPage));
    EXPECT_FALSE(readable(low + 2 * kPage));
    windows.open(low + (kPages - 1) * kPage);
    EXPECT_EQ(1u, g_counters.windows.load()) << "a page that is not armed is no window";
    windows.close_all();
    EXPECT_FALSE(readable(low + kPage));
    EXPECT_TRUE(readable(low + (kPages - 1) * kPage));
  });
}

TEST(PageWindows, APageClosedByAnotherIsOpenedAgain) {
  with_heap([](uint64_t low) {
    PageWindows mine, other;
    mine.open(low);
    other.open(low);
    other.close_all();
    EXPECT_FALSE(readable(low));
    mine.open(low);
    EXPECT_TRUE(readable(low));
    mine.close_all();
    EXPECT_FALSE(readable(low));
  });
}

TEST(PageWindows, WithAllPlacesTakenTheFirstIsClosed) {
  with_heap([](uint64_t low) {
    PageWindows windows;
    for (uint64_t i = 0; i < PageWindows::kMaxPages + 2; ++i) windows.open(low + i * kPage);
    EXPECT_FALSE(readable(low));
    EXPECT_FALSE(readable(low + kPage));
    for (uint64_t i = 2; i < PageWindows::kMaxPages + 2; ++i) EXPECT_TRUE(readable(low + i * kPage)) << i;
    windows.close_all();
    for (uint64_t i = 0; i < PageWindows::kMaxPages + 2; ++i) EXPECT_FALSE(readable(low + i * kPage)) << i;
  });
}

TEST(PageWindows, TheHandlersOwnFaultsOpenPagesUntilItIsDone) {
  with_heap([](uint64_t low) {
    EXPECT_FALSE(HandlerWindows::take_fault(low)) << "outside the handler";
    {
      HandlerWindows windows;
      EXPECT_TRUE(HandlerWindows::take_fault(low));
      EXPECT_TRUE(readable(low));
      HandlerWindows::shut();
      EXPECT_FALSE(readable(low));
      EXPECT_TRUE(HandlerWindows::take_fault(low + kPage));
    }
    EXPECT_FALSE(readable(low + kPage));
    EXPECT_FALSE(HandlerWindows::take_fault(low));
  });
}

}  // namespace
}  // namespace classaccess
