// A heap that exists becomes shared with the twin. Each test in a child: once in a process.
#include "agent/protect/heap_conversion.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"
#include "tests/fault/child.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBytes = 3 * HeapConversion::kChunkBytes + 5 * kPage;

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

// Reserved, all of it but the last page committed.
uint64_t make_heap() {
  void* got = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mprotect(got, kBytes - kPage, PROT_READ | PROT_WRITE);
  return reinterpret_cast<uint64_t>(got);
}

// Resident pages of the twin's memfd in [address, address + bytes).
uint64_t resident(uint64_t address, uint64_t bytes) {
  std::string pages(bytes / kPage, '\0');
  mincore(g_twin.at(address), bytes, reinterpret_cast<unsigned char*>(pages.data()));
  uint64_t count = 0;
  for (char page : pages) count += page & 1;
  return count;
}

template <typename Body>
void in_child(Body&& body) {
  test::expect_fine_in_child([&] {
    // The mprotect back end: nothing is closed before close_all.
    ASSERT_STREQ("", g_gate.choose(HeapGate::BackEnd::kMprotect));
    body(make_heap());
  });
}

ConversionResult convert(uint64_t heap, TwinUse twin = TwinUse::kRequired) {
  HeapRange all{heap, heap + kBytes - kPage};
  return HeapConversion::run({heap, heap + kBytes, &all, 1, &all, 1}, twin);
}

TEST(HeapConversion, ContentsAreInBothViewsAndUntouchedPagesStaySo) {
  in_child([](uint64_t heap) {
    const uint64_t places[] = {0,
                               kPage,
                               HeapConversion::kChunkBytes - 8,
                               HeapConversion::kChunkBytes,
                               2 * HeapConversion::kChunkBytes + 7 * kPage,
                               kBytes - kPage - 8};
    for (uint64_t place : places) *pointer(heap + place) = static_cast<char>(place / 8 + 5);
    volatile char only_read = *pointer(heap + 100 * kPage);
    (void)only_read;
    ConversionResult result = convert(heap);
    EXPECT_EQ(0, result.error);
    EXPECT_EQ(kBytes - kPage, result.committed);
    EXPECT_EQ(6 * kPage, result.copied);
    for (uint64_t place : places) {
      EXPECT_EQ(static_cast<char>(place / 8 + 5), *pointer(heap + place)) << place;
      EXPECT_EQ(static_cast<char>(place / 8 + 5), *g_twin.at(heap + place)) << place;
      EXPECT_TRUE(g_armed.armed(heap + place));
    }
    EXPECT_EQ(6u, resident(heap, kBytes));
    EXPECT_FALSE(g_committed.armed(heap + kBytes - kPage));
    strcpy(pointer(heap + 50 * kPage), "both");
    EXPECT_STREQ("both", g_twin.at(heap + 50 * kPage));
    HeapMappingState state = heap_mapping_state();
    EXPECT_TRUE(state.found);
    EXPECT_EQ(heap, state.low);
  });
}

TEST(HeapConversion, WhatHoldsNoObjectsReadsAsZero) {
  in_child([](uint64_t heap) {
    memset(pointer(heap), 7, 16 * kPage);
    HeapRange all{heap, heap + kBytes - kPage};
    // Tops lie anywhere in a page.
    HeapRange used[] = {{heap, heap + 2 * kPage + 8}, {heap + 5 * kPage + 16, heap + 6 * kPage}};
    ConversionResult result = HeapConversion::run({heap, heap + kBytes, &all, 1, used, 2}, TwinUse::kRequired);
    EXPECT_EQ(0, result.error);
    for (uint64_t page = 0; page < 16; ++page) {
      EXPECT_EQ(page < 3 || page == 5 ? 7 : 0, *pointer(heap + page * kPage)) << page;
    }
  });
}

TEST(HeapConversion, PrivateFilePagesAreReadIn) {
  in_child([](uint64_t heap) {
    char path[] = "/tmp/heap_conversion_XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    unlink(path);
    std::string text(4 * kPage, 'f');
    ASSERT_EQ(static_cast<ssize_t>(text.size()), write(fd, text.data(), text.size()));
    uint64_t at = heap + 8 * kPage;
    ASSERT_EQ(pointer(at), mmap(pointer(at), 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0));
    *pointer(at + kPage) = 'w';  // the others were never touched
    HeapRange parts[] = {{heap, at}, {at, at + 4 * kPage, true}, {at + 4 * kPage, heap + kBytes - kPage}};
    HeapRange used{heap, heap + kBytes};
    EXPECT_EQ(0, HeapConversion::run({heap, heap + kBytes, parts, 3, &used, 1}, TwinUse::kRequired).error);
    text[kPage] = 'w';
    EXPECT_EQ(text, std::string(pointer(at), 4 * kPage));
    EXPECT_EQ(text, std::string(g_twin.at(at), 4 * kPage));
  });
}

// As a thread in a JNI critical section, which a safepoint does not stop.
TEST(HeapConversion, StoresMeanwhileWaitAndAreNotLost) {
  in_child([](uint64_t heap) {
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t* info, void* context) {
      auto pc = static_cast<uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
      if (info->si_code != SEGV_ACCERR || !HeapConversion::wait(reinterpret_cast<uint64_t>(info->si_addr), pc)) abort();
    };
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    for (uint64_t at = 0; at < kBytes - kPage; at += 8 * kPage) *pointer(heap + at) = 1;
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> rounds{0};
    constexpr int kWords = 512;
    std::thread writer([&] {
      uint64_t round = 0;
      while (!stop) {
        ++round;
        for (uint64_t i = 0; i < kWords; ++i) {
          auto* word = reinterpret_cast<volatile uint64_t*>(heap + i * 192 * 1024);
          *word = *word + 1;
        }
        rounds = round;
      }
    });
    while (rounds < 3) std::this_thread::yield();
    ConversionResult result = convert(heap);
    uint64_t at_end = rounds;
    while (rounds < at_end + 3) std::this_thread::yield();
    stop = true;
    writer.join();
    EXPECT_EQ(0, result.error);
    for (uint64_t i = 0; i < kWords; ++i) {
      uint64_t first = i * 192 * 1024 % (8 * kPage) == 0 ? 1 : 0;
      ASSERT_EQ(rounds + first, *reinterpret_cast<uint64_t*>(heap + i * 192 * 1024)) << i;
    }
  });
}

TEST(HeapConversion, ARealFaultIsNotTakenForOne) {
  in_child([](uint64_t heap) {
    EXPECT_FALSE(HeapConversion::wait(heap, 1)) << "before any";
    EXPECT_EQ(0, convert(heap).error);
    EXPECT_TRUE(HeapConversion::wait(heap, 1)) << "it may just have ended";
    EXPECT_FALSE(HeapConversion::wait(heap, 1)) << "but not twice for one store";
    EXPECT_FALSE(HeapConversion::wait(heap - 8, 1));
    EXPECT_FALSE(HeapConversion::wait(heap + kBytes, 1));
  });
}

TEST(HeapConversion, WithoutATwinPagesAreOnlyClosed) {
  in_child([](uint64_t heap) {
    *pointer(heap) = 3;
    ConversionResult result = convert(heap, TwinUse::kOff);
    EXPECT_EQ(0, result.error);
    EXPECT_EQ(0u, result.copied);
    EXPECT_FALSE(g_twin.created());
    EXPECT_TRUE(g_armed.armed(heap));
    EXPECT_EQ(3, *pointer(heap));
  });
}

}  // namespace
}  // namespace classaccess
