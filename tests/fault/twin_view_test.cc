#include "agent/protect/twin_view.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/fault/child.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBytes = 64 * kPage;

// Whether the page at `address` is mapped so that it can be read.
bool readable(uint64_t address) {
  int fds[2];
  if (pipe(fds) != 0) return false;
  bool ok = write(fds[1], reinterpret_cast<const void*>(address), 1) == 1;
  close(fds[0]);
  close(fds[1]);
  return ok;
}

// KiB of the memfd that are in memory.
uint64_t resident_blocks() {
  for (int fd = 3; fd < 256; ++fd) {
    char name[256] = {};
    std::string link = "/proc/self/fd/" + std::to_string(fd);
    struct stat status;
    if (readlink(link.c_str(), name, sizeof(name) - 1) > 0 && strstr(name, "classaccess-heap") != nullptr &&
        fstat(fd, &status) == 0) {
      return static_cast<uint64_t>(status.st_blocks) / 2;
    }
  }
  return ~0ull;
}

uint64_t reserve(uint64_t at) {
  void* got = mmap(reinterpret_cast<void*>(at), kBytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED : 0), -1, 0);
  EXPECT_NE(MAP_FAILED, got);
  return reinterpret_cast<uint64_t>(got);
}

// A low heap, as with compressed oops, and one where the kernel puts it.
class TwinViewTest : public testing::TestWithParam<uint64_t> {
 protected:
  template <typename Body>
  void with_twin(Body&& body) {
    test::expect_fine_in_child([&] {
      uint64_t low = reserve(GetParam());
      TwinView twin;
      EXPECT_FALSE(twin.created());
      ASSERT_TRUE(twin.create(low, low + kBytes)) << strerror(errno);
      EXPECT_TRUE(twin.created());
      body(twin, low);
    });
  }
};

TEST_P(TwinViewTest, BothViewsShowTheSameBytes) {
  with_twin([](TwinView& twin, uint64_t low) {
    ASSERT_EQ(0, twin.commit(low + 4 * kPage, 8 * kPage));
    auto* plain = reinterpret_cast<char*>(low + 4 * kPage);
    char* other = twin.at(low + 4 * kPage);
    EXPECT_EQ(static_cast<uint64_t>(twin.distance()),
              reinterpret_cast<uint64_t>(other) - reinterpret_cast<uint64_t>(plain));
    for (uint64_t i = 0; i < 8 * kPage; ++i) ASSERT_EQ(0, plain[i]) << i;
    strcpy(plain + kPage - 3, "across");
    EXPECT_STREQ("across", other + kPage - 3);
    other[8 * kPage - 1] = 'z';
    EXPECT_EQ('z', plain[8 * kPage - 1]);
    EXPECT_FALSE(readable(low + 3 * kPage)) << "before the commit";
    EXPECT_FALSE(readable(low + 12 * kPage)) << "behind it";
  });
}

TEST_P(TwinViewTest, CommitReadsAsZeroAgain) {
  with_twin([](TwinView& twin, uint64_t low) {
    ASSERT_EQ(0, twin.commit(low, 4 * kPage));
    memset(twin.at(low), 0x5a, 4 * kPage);
    ASSERT_EQ(0, twin.commit(low + kPage, kPage));
    auto* plain = reinterpret_cast<unsigned char*>(low);
    EXPECT_EQ(0x5a, plain[kPage - 1]);
    for (uint64_t i = 0; i < kPage; ++i) ASSERT_EQ(0, plain[kPage + i]) << i;
    EXPECT_EQ(0x5a, plain[2 * kPage]);
  });
}

TEST_P(TwinViewTest, DiscardGivesTheMemoryBack) {
  with_twin([](TwinView& twin, uint64_t low) {
    EXPECT_EQ(0u, resident_blocks());
    ASSERT_EQ(0, twin.commit(low, kBytes));
    memset(reinterpret_cast<void*>(low), 1, kBytes);
    EXPECT_EQ(kBytes / 1024, resident_blocks());
    twin.discard(low + 8 * kPage, kBytes - 8 * kPage);
    EXPECT_EQ(8 * kPage / 1024, resident_blocks());
    EXPECT_EQ(1, *twin.at(low + 8 * kPage - 1));
    EXPECT_EQ(0, *twin.at(low + 8 * kPage));
    EXPECT_EQ(0, *reinterpret_cast<char*>(low + kBytes - 1)) << "the plain view too";
  });
}

// Null as a compressed oop with a base leads in front of the heap, into the same reservation.
TEST_P(TwinViewTest, WhatIsReservedWithTheHeapCanBeClosed) {
  with_twin([](TwinView& twin, uint64_t low) {
    ASSERT_EQ(0, twin.commit(low + 2 * kPage, kPage));
    EXPECT_TRUE(readable(reinterpret_cast<uint64_t>(twin.at(low))));
    ASSERT_EQ(0, twin.close_image(low, low + 2 * kPage));
    EXPECT_FALSE(readable(reinterpret_cast<uint64_t>(twin.at(low))));
    EXPECT_FALSE(readable(reinterpret_cast<uint64_t>(twin.at(low + 2 * kPage - 1))));
    EXPECT_TRUE(readable(reinterpret_cast<uint64_t>(twin.at(low + 2 * kPage))));
    EXPECT_EQ(0, twin.close_image(low, low)) << "nothing to close";
  });
}

TEST_P(TwinViewTest, TheTwinsSurroundingsAreNotMapped) {
  with_twin([](TwinView& twin, uint64_t low) {
    ASSERT_EQ(0, twin.commit(low, kBytes));
    auto begin = reinterpret_cast<uint64_t>(twin.at(low));
    EXPECT_TRUE(readable(begin));
    EXPECT_TRUE(readable(begin + kBytes - 1));
    for (uint64_t away : {uint64_t{1}, kPage, uint64_t{1} << 20, uint64_t{1} << 30, uint64_t{255} << 30}) {
      EXPECT_FALSE(readable(begin - away)) << away;
      EXPECT_FALSE(readable(begin + kBytes - 1 + away)) << away;
    }
    // Nor does the kernel put anything there.
    void* got = mmap(reinterpret_cast<void*>(begin - kPage), kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(reinterpret_cast<void*>(begin - kPage), got);
    // The images of the usual neighbours: program, stack, libraries.
    static int in_program;
    int on_stack = 0;
    for (void* p : {static_cast<void*>(&in_program), static_cast<void*>(&on_stack), reinterpret_cast<void*>(&memcpy)}) {
      EXPECT_FALSE(readable(reinterpret_cast<uint64_t>(twin.at(reinterpret_cast<uint64_t>(p))))) << p;
    }
  });
}

TEST_P(TwinViewTest, AForkedChildDoesNotSeeTheHeap) {
  with_twin([](TwinView& twin, uint64_t low) {
    ASSERT_EQ(0, twin.commit(low, kBytes));
    *reinterpret_cast<char*>(low) = 7;
    test::expect_fine_in_child([&] {
      EXPECT_FALSE(readable(low));
      EXPECT_FALSE(readable(reinterpret_cast<uint64_t>(twin.at(low))));
    });
    EXPECT_EQ(7, *reinterpret_cast<char*>(low));
  });
}

INSTANTIATE_TEST_SUITE_P(Heaps, TwinViewTest, testing::Values(0x700000000ull, 0ull),
                         [](const testing::TestParamInfo<uint64_t>& p) { return p.param != 0 ? "Low" : "High"; });

}  // namespace
}  // namespace classaccess
