// The hooks, driven by a library that looks like libjvm to them. Each test in a child:
// the heap is recognised once in a process.
#include "agent/protect/heap_mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "agent/base/counters.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/protection_key.h"
#include "agent/protect/twin_view.h"
#include "tests/fault/child.h"
#include "tests/fault/fake_libjvm.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHeap = 16 << 20;
constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
constexpr int kCommit = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

uint64_t reserve(uint64_t bytes, uint64_t at = 0) {
  return reinterpret_cast<uint64_t>(fake_mmap(pointer(at), bytes, PROT_NONE, kReserve, -1, 0));
}
bool commit(uint64_t at, uint64_t bytes, int prot = kReadWrite) {
  return fake_mmap(pointer(at), bytes, prot, kCommit, -1, 0) == pointer(at);
}
bool uncommit(uint64_t at, uint64_t bytes) {
  return fake_mmap(pointer(at), bytes, PROT_NONE, kCommit | MAP_NORESERVE, -1, 0) == pointer(at);
}

// The protection key of the mapping at `address`, from the kernel; -1 if not mapped.
int key_of(uint64_t address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    unsigned long low, high;
    int key;
    if (sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) inside = address >= low && address < high;
    if (inside && sscanf(line.c_str(), "ProtectionKey: %d", &key) == 1) return key;
  }
  return -1;
}

class HeapMappingsTest : public testing::Test {
 protected:
  void SetUp() override {
    test::ChildEnd end = test::run_in_child([] { _exit(g_key.alloc()[0] == '\0' ? 0 : 7); });
    if (end.code == 7) GTEST_SKIP() << "no protection key here";
  }
  template <typename Body>
  void hooked(Body&& body) {
    test::expect_fine_in_child([&] {
      ASSERT_STREQ("", g_gate.choose(HeapGate::BackEnd::kPkey));
      ASSERT_STREQ("", install_heap_mappings(kHeap));
      body();
    });
  }
};

TEST_F(HeapMappingsTest, TheHeapIsTheReservationOfItsSize) {
  hooked([] {
    uint64_t small = reserve(kHeap - kPage), heap = reserve(kHeap);
    EXPECT_TRUE(commit(small, kPage));
    EXPECT_FALSE(heap_mapping_state().found) << "too small";
    EXPECT_TRUE(commit(heap + 2 * kPage, 4 * kPage));
    HeapMappingState state = heap_mapping_state();
    ASSERT_TRUE(state.found);
    EXPECT_EQ(0, state.error);
    EXPECT_EQ(heap, state.low);
    EXPECT_EQ(heap + kHeap, state.high);
    EXPECT_EQ(heap, g_armed.low());
    EXPECT_FALSE(g_armed.armed(heap + 2 * kPage - 1));
    EXPECT_TRUE(g_armed.armed(heap + 2 * kPage, 4 * kPage));
    EXPECT_FALSE(g_armed.armed(heap + 6 * kPage));
    EXPECT_EQ(1u, g_counters.commits.load());
  });
}

TEST_F(HeapMappingsTest, ReservationsAreTrimmedAndGivenBack) {
  hooked([] {
    uint64_t misplaced = reserve(kHeap);
    EXPECT_EQ(0, fake_munmap(pointer(misplaced), kHeap));
    uint64_t big = reserve(kHeap + 8 * kPage);
    EXPECT_EQ(0, fake_munmap(pointer(big), 3 * kPage));
    EXPECT_EQ(0, fake_munmap(pointer(big + 3 * kPage + kHeap), 5 * kPage));
    EXPECT_TRUE(commit(big + 3 * kPage, kPage));
    HeapMappingState state = heap_mapping_state();
    ASSERT_TRUE(state.found);
    EXPECT_EQ(big + 3 * kPage, state.low);
    EXPECT_EQ(big + 3 * kPage + kHeap, state.high);
  });
}

TEST_F(HeapMappingsTest, ACodeCacheOfTheSameSizeIsNotTheHeap) {
  hooked([] {
    uint64_t code = reserve(kHeap), heap = reserve(kHeap);
    EXPECT_TRUE(commit(code, 4 * kPage, kReadWrite | PROT_EXEC));
    EXPECT_FALSE(heap_mapping_state().found);
    *pointer(code) = 'x';
    EXPECT_TRUE(commit(heap, 4 * kPage));
    ASSERT_TRUE(heap_mapping_state().found);
    EXPECT_EQ(heap, heap_mapping_state().low);
    EXPECT_TRUE(commit(code + 4 * kPage, kPage, kReadWrite | PROT_EXEC));
    EXPECT_EQ(0, key_of(code));
    EXPECT_EQ(0, key_of(code + 4 * kPage));
    EXPECT_EQ('x', *pointer(code));
  });
}

TEST_F(HeapMappingsTest, ATableOfTheSameSizeCommittedFirstIsNotTheHeap) {
  hooked([] {
    uint64_t heap = reserve(kHeap), table = reserve(kHeap);
    EXPECT_TRUE(commit(table, kPage));
    EXPECT_FALSE(heap_mapping_state().found);
    EXPECT_TRUE(commit(heap, kPage));
    ASSERT_TRUE(heap_mapping_state().found);
    EXPECT_EQ(heap, heap_mapping_state().low);
    EXPECT_TRUE(commit(table + kPage, kPage));
    EXPECT_EQ(0, key_of(table + kPage));
  });
}

TEST_F(HeapMappingsTest, CommitsAreSharedTaggedAndZero) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 4 * kPage));
    EXPECT_EQ(g_key.key(), key_of(heap));
    EXPECT_EQ(g_key.key(), key_of(heap + 4 * kPage - 1));
    EXPECT_EQ(0, key_of(heap + 4 * kPage));
    EXPECT_EQ(0, key_of(reinterpret_cast<uint64_t>(g_twin.at(heap)))) << "the twin is never closed";
    strcpy(pointer(heap), "both");
    EXPECT_STREQ("both", g_twin.at(heap));
    // Committed anew: closed again (MAP_FIXED drops a key) and zero.
    EXPECT_TRUE(commit(heap, 4 * kPage));
    EXPECT_EQ(0, *pointer(heap));
    EXPECT_EQ(g_key.key(), key_of(heap));
  });
}

TEST_F(HeapMappingsTest, UncommitGivesTheMemoryBack) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 8 * kPage));
    memset(pointer(heap), 0x11, 8 * kPage);
    EXPECT_TRUE(uncommit(heap + 2 * kPage, 2 * kPage));
    EXPECT_EQ(1u, g_counters.uncommits.load());
    EXPECT_TRUE(g_armed.armed(heap + 2 * kPage - 1));
    EXPECT_FALSE(g_armed.armed(heap + 2 * kPage));
    EXPECT_FALSE(g_committed.armed(heap + 2 * kPage));
    EXPECT_TRUE(g_armed.armed(heap + 4 * kPage));
    EXPECT_EQ(0, *g_twin.at(heap + 2 * kPage)) << "the old contents are gone";
    EXPECT_EQ(0x11, *g_twin.at(heap + 4 * kPage));
    EXPECT_TRUE(commit(heap + 2 * kPage, 2 * kPage));
    EXPECT_EQ(0, *pointer(heap + 2 * kPage));
    EXPECT_EQ(g_key.key(), key_of(heap + 2 * kPage));
    EXPECT_TRUE(g_armed.armed(heap, 8 * kPage));
    EXPECT_EQ(0, fake_munmap(pointer(heap + 6 * kPage), 2 * kPage));
    EXPECT_FALSE(g_armed.armed(heap + 6 * kPage));
    EXPECT_EQ(0, *g_twin.at(heap + 6 * kPage));
  });
}

TEST_F(HeapMappingsTest, AFileMappingIsReadIn) {
  hooked([] {
    char path[] = "/tmp/heap_mappings_XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    unlink(path);
    std::string text(3 * kPage, '\0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
    ASSERT_EQ(static_cast<ssize_t>(text.size()), write(fd, text.data(), text.size()));
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, kPage));
    // A length that ends inside a page: the rest of the page reads as zero, as it would mapped.
    uint64_t at = heap + 4 * kPage, bytes = kPage + 100;
    EXPECT_EQ(pointer(at), fake_mmap(pointer(at), bytes, kReadWrite, MAP_PRIVATE | MAP_FIXED, fd, kPage));
    EXPECT_EQ(text.substr(kPage, bytes), std::string(pointer(at), bytes));
    EXPECT_EQ(text.substr(kPage, bytes), std::string(g_twin.at(at), bytes));
    EXPECT_EQ(g_key.key(), key_of(at + kPage));
    EXPECT_TRUE(g_armed.armed(at, 2 * kPage));
    *pointer(at) = '!';
    EXPECT_EQ('!', *g_twin.at(at));
    char byte;
    EXPECT_EQ(1, pread(fd, &byte, 1, kPage));
    EXPECT_EQ(text[kPage], byte) << "private: the file stays as it was";
  });
}

TEST_F(HeapMappingsTest, MadviseDontneedZeroes) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 8 * kPage));
    memset(pointer(heap), 0x22, 8 * kPage);
    EXPECT_EQ(0, fake_madvise(pointer(heap + kPage), 2 * kPage, MADV_DONTNEED));
    EXPECT_EQ(0x22, *pointer(heap + kPage - 1));
    for (uint64_t i = kPage; i < 3 * kPage; ++i) ASSERT_EQ(0, *pointer(heap + i)) << i;
    EXPECT_EQ(0x22, *pointer(heap + 3 * kPage));
    EXPECT_TRUE(g_armed.armed(heap + kPage)) << "still committed";
    EXPECT_EQ(g_key.key(), key_of(heap + kPage));
    EXPECT_EQ(0, fake_madvise(pointer(heap), kPage, MADV_NORMAL));
    EXPECT_EQ(0x22, *pointer(heap));
  });
}

TEST_F(HeapMappingsTest, MprotectClosesAndOpens) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 4 * kPage));
    strcpy(pointer(heap + kPage), "kept");
    EXPECT_EQ(0, fake_mprotect(pointer(heap + kPage), kPage, PROT_NONE));
    EXPECT_FALSE(g_armed.armed(heap + kPage)) << "a fault there is the VM's business";
    EXPECT_EQ(0, fake_mprotect(pointer(heap + kPage), kPage, kReadWrite));
    EXPECT_TRUE(g_armed.armed(heap + kPage));
    EXPECT_STREQ("kept", pointer(heap + kPage));
    EXPECT_EQ(g_key.key(), key_of(heap + kPage));
  });
}

// PROT_READ was taken for read-write: stores that must fault succeeded on the twin.
TEST_F(HeapMappingsTest, ReadOnlyPagesAreTheVmsBusiness) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 4 * kPage));
    strcpy(pointer(heap + kPage), "kept");
    EXPECT_EQ(0, fake_mprotect(pointer(heap + kPage), kPage, PROT_READ));
    EXPECT_FALSE(g_armed.armed(heap + kPage));
    EXPECT_EQ(0, key_of(heap + kPage)) << "whoever may read it, can";
    EXPECT_STREQ("kept", pointer(heap + kPage));
    test::ChildEnd end = test::run_in_child([&] {
      // The heap itself is not inherited.
      _exit(*pointer(heap + kPage));
    });
    EXPECT_FALSE(end.exited);
    EXPECT_EQ(0, fake_mprotect(pointer(heap + kPage), kPage, kReadWrite));
    EXPECT_TRUE(g_armed.armed(heap + kPage));
    EXPECT_EQ(g_key.key(), key_of(heap + kPage));
    EXPECT_STREQ("kept", g_twin.at(heap + kPage));
  });
}

// A commit by mprotect left private pages, armed, whose accesses went to the twin's.
TEST_F(HeapMappingsTest, MprotectOfReservedPagesCommitsThem) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 2 * kPage));
    strcpy(pointer(heap + kPage), "kept");
    EXPECT_EQ(0, fake_mprotect(pointer(heap), 5 * kPage, kReadWrite));
    EXPECT_TRUE(g_armed.armed(heap, 5 * kPage));
    EXPECT_FALSE(g_armed.armed(heap + 5 * kPage));
    EXPECT_STREQ("kept", pointer(heap + kPage));
    strcpy(pointer(heap + 3 * kPage), "both");
    EXPECT_STREQ("both", g_twin.at(heap + 3 * kPage));
    EXPECT_EQ(g_key.key(), key_of(heap + 4 * kPage));
  });
}

TEST_F(HeapMappingsTest, MadvisePopulateWorksOnClosedPages) {
  hooked([] {
    constexpr int kPopulateWrite = 23;
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 4 * kPage));
    g_key.deny_here();
    int result = fake_madvise(pointer(heap), 4 * kPage, kPopulateWrite);
    int error = errno;
    g_key.allow_here();
    EXPECT_TRUE(result == 0 || error == EINVAL) << strerror(error);  // before 5.14 there is none
    unsigned char resident[4] = {};
    if (result != 0) return;
    EXPECT_EQ(0, mincore(g_twin.at(heap), 4 * kPage, resident));
    for (unsigned char r : resident) EXPECT_EQ(1, r & 1);
  });
}

TEST_F(HeapMappingsTest, MadviseDoforkKeepsTheHeapFromChildren) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, kPage));
    *pointer(heap) = 0;
    EXPECT_EQ(0, fake_madvise(pointer(heap), kPage, MADV_DOFORK));
    test::ChildEnd end = test::run_in_child([&] { _exit(*pointer(heap)); });
    EXPECT_FALSE(end.exited);
  });
}

TEST_F(HeapMappingsTest, WithoutATwinCommitsStayPrivate) {
  test::expect_fine_in_child([] {
    ASSERT_STREQ("", g_gate.choose(HeapGate::BackEnd::kPkey));
    ASSERT_STREQ("", install_heap_mappings(kHeap, TwinUse::kOff));
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, 4 * kPage));
    ASSERT_TRUE(heap_mapping_state().found);
    EXPECT_FALSE(g_twin.created());
    EXPECT_EQ(pointer(heap), g_twin.at(heap));
    EXPECT_EQ(1u, g_counters.no_twin.load());
    EXPECT_EQ(g_key.key(), key_of(heap));
    *pointer(heap) = 5;
    test::ChildEnd end = test::run_in_child([&] { _exit(*pointer(heap)); });
    EXPECT_TRUE(end.exited) << "a child has the heap, as without the agent";
    EXPECT_EQ(5, end.code);
    EXPECT_EQ(0, fake_madvise(pointer(heap), kPage, MADV_DONTNEED));
    EXPECT_EQ(0, *pointer(heap));
    EXPECT_TRUE(uncommit(heap, 2 * kPage));
    EXPECT_FALSE(g_armed.armed(heap + kPage));
    EXPECT_TRUE(g_armed.armed(heap + 2 * kPage));
    EXPECT_TRUE(commit(heap, kPage));
    EXPECT_TRUE(g_armed.armed(heap));
  });
}

TEST_F(HeapMappingsTest, TheLimitKeepsTheRestOpenButShared) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    g_armed.limit(heap + 2 * kPage, heap + 4 * kPage);
    EXPECT_TRUE(commit(heap, 8 * kPage));
    EXPECT_EQ(0, key_of(heap));
    EXPECT_EQ(g_key.key(), key_of(heap + 2 * kPage));
    EXPECT_EQ(0, key_of(heap + 4 * kPage));
    *pointer(heap) = 3;
    EXPECT_EQ(3, *g_twin.at(heap));
  });
}

TEST_F(HeapMappingsTest, OthersCallsAreUnchanged) {
  hooked([] {
    uint64_t heap = reserve(kHeap);
    EXPECT_TRUE(commit(heap, kPage));
    uint64_t elsewhere = reserve(4 * kPage);
    EXPECT_TRUE(commit(elsewhere, 4 * kPage));
    EXPECT_EQ(0, key_of(elsewhere));
    memset(pointer(elsewhere), 1, kPage);
    EXPECT_EQ(0, fake_madvise(pointer(elsewhere), kPage, MADV_DONTNEED));
    EXPECT_EQ(0, *pointer(elsewhere));
    EXPECT_EQ(0, fake_munmap(pointer(elsewhere), 4 * kPage));
    errno = 0;
    EXPECT_EQ(-1, fake_mprotect(pointer(elsewhere), kPage, kReadWrite));
    EXPECT_EQ(ENOMEM, errno);
    remove_heap_mappings();
    EXPECT_TRUE(commit(heap + kPage, kPage));
    EXPECT_FALSE(g_armed.armed(heap + kPage)) << "hooks are out";
  });
}

}  // namespace
}  // namespace classaccess
