#include "agent/base/safe_load.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

namespace classaccess {
namespace {

std::atomic<int> g_recovered{0};

void recover(int signal_number, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  uint64_t resume = safe_load_recover(static_cast<uint64_t>(registers[REG_RIP]));
  if (resume == 0) {
    signal(signal_number, SIG_DFL);  // a real crash: fails the test when it faults again
    return;
  }
  ++g_recovered;
  registers[REG_RIP] = static_cast<greg_t>(resume);
}

uint64_t address_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

// A readable page followed by a closed one.
class SafeLoad : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_sigaction = recover;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old_segv_);
    sigaction(SIGBUS, &action, &old_bus_);
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    memory_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, static_cast<void*>(memory_));
    for (size_t i = 0; i < page_; ++i) memory_[i] = static_cast<char>(i * 7 + 1);
    ASSERT_EQ(0, mprotect(memory_ + page_, page_, PROT_NONE));
    g_recovered = 0;
  }
  void TearDown() override {
    munmap(memory_, 2 * page_);
    sigaction(SIGSEGV, &old_segv_, nullptr);
    sigaction(SIGBUS, &old_bus_, nullptr);
  }

  size_t page_ = 0;
  char* memory_ = nullptr;
  struct sigaction old_segv_ = {}, old_bus_ = {};
};

template <typename T>
void expect_loads(const char* from) {
  T expected, got = 0;
  memcpy(&expected, from, sizeof expected);
  EXPECT_TRUE(safe_load(address_of(from), &got));
  EXPECT_EQ(expected, got);
}

TEST_F(SafeLoad, ReadsWhatIsThere) {
  expect_loads<uint8_t>(memory_ + 5);
  expect_loads<uint16_t>(memory_ + 5);
  expect_loads<uint32_t>(memory_ + 5);
  expect_loads<uint64_t>(memory_ + 5);
  expect_loads<uint64_t>(memory_ + page_ - 8);
  EXPECT_EQ(0, g_recovered);
}

template <typename T>
void expect_fails(uint64_t from) {
  T value = 0x5a;
  int before = g_recovered;
  EXPECT_FALSE(safe_load(from, &value));
  EXPECT_EQ(before + 1, g_recovered);
}

TEST_F(SafeLoad, FailsInsteadOfCrashing) {
  uint64_t closed = address_of(memory_ + page_);
  for (uint64_t bad : {closed, uint64_t{0}, uint64_t{0x8000000000000000}}) {
    expect_fails<uint8_t>(bad);
    expect_fails<uint16_t>(bad);
    expect_fails<uint32_t>(bad);
    expect_fails<uint64_t>(bad);
  }
  expect_fails<uint64_t>(closed - 4);  // half of it is readable
}

TEST_F(SafeLoad, AFailedLoadLeavesTheTargetAlone) {
  uint64_t wide = 0x1122334455667788;
  uint32_t narrow = 0x11223344;
  EXPECT_FALSE(safe_load(address_of(memory_ + page_), &wide));
  EXPECT_FALSE(safe_load(address_of(memory_ + page_), &narrow));
  EXPECT_EQ(0x1122334455667788u, wide);
  EXPECT_EQ(0x11223344u, narrow);
}

TEST_F(SafeLoad, CopiesWholeAndInPart) {
  char to[64];
  EXPECT_TRUE(safe_copy(to, address_of(memory_), sizeof to));
  EXPECT_EQ(0, memcmp(to, memory_, sizeof to));
  EXPECT_TRUE(safe_copy(to, address_of(memory_ + page_), 0)) << "nothing to copy, nothing to fault";

  memset(to, 0, sizeof to);
  EXPECT_EQ(48u, classaccess_safe_copy(to, memory_ + page_ - 16, sizeof to)) << "the rest past the page's end";
  EXPECT_EQ(0, memcmp(to, memory_ + page_ - 16, 16));
  EXPECT_EQ(0, to[16]);
  EXPECT_EQ(1, g_recovered);
}

TEST_F(SafeLoad, AMappingBehindItsFilesEndFailsToo) {  // SIGBUS
  int fd = memfd_create("safe_load_test", 0);
  ASSERT_GE(fd, 0);
  void* memory = mmap(nullptr, page_, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(MAP_FAILED, memory);
  expect_fails<uint64_t>(address_of(memory));
  munmap(memory, page_);
  close(fd);
}

TEST_F(SafeLoad, IsReadableAsksWithoutAFault) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  int recovered = g_recovered;
  EXPECT_TRUE(is_readable(address_of(memory_)));
  EXPECT_TRUE(is_readable(address_of(memory_ + page_ - 1)));
  EXPECT_FALSE(is_readable(address_of(memory_ + page_)));
  EXPECT_FALSE(is_readable(8));
  EXPECT_FALSE(is_readable(1ull << 62));
  EXPECT_EQ(recovered, g_recovered);
  sigprocmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(0, memcmp(&before, &after, 8)) << "the mask is as it was";
}

TEST_F(SafeLoad, OtherAddressesAreNotOurs) {
  EXPECT_EQ(0u, safe_load_recover(0));
  EXPECT_EQ(0u, safe_load_recover(address_of(memory_)));
  EXPECT_EQ(0u, safe_load_recover(address_of(reinterpret_cast<const void*>(&memcpy))));
}

}  // namespace
}  // namespace classaccess
