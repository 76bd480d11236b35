#include "agent/protect/heap_conversion.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "agent/base/raw_syscall.h"
#include "agent/base/wake.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = ArmedPages::kPageBytes;
constexpr uint64_t kChunkPages = HeapConversion::kChunkBytes / kPage;

// The range whose stores fault now, and whether there ever was one.
std::atomic<uint64_t> g_low{0}, g_high{0};
std::atomic<bool> g_running{false};
__thread uint64_t t_retried_address __attribute__((tls_model("initial-exec")));
__thread uint64_t t_retried_pc __attribute__((tls_model("initial-exec")));

// Documentation/admin-guide/mm/pagemap.rst: one word a page.
constexpr uint64_t kPresentOrSwapped = 3ull << 62;
uint64_t g_pagemap[kChunkPages];

// Fills g_pagemap for [low, high); where it cannot be read every page counts as touched.
void read_pagemap(int fd, uint64_t low, uint64_t high) {
  size_t wanted = (high - low) / kPage * 8;
  size_t got = 0;
  while (fd >= 0 && got < wanted) {
    ssize_t n = pread64(fd, reinterpret_cast<char*>(g_pagemap) + got, wanted - got,
                        static_cast<off64_t>(low / kPage * 8 + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  if (got < wanted) memset(g_pagemap, 0xff, wanted);
}

bool is_zero(uint64_t page) {
  auto* words = reinterpret_cast<const uint64_t*>(page);
  for (uint64_t i = 0; i < kPage / 8; i += 8) {
    uint64_t any = words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] | words[i + 5] | words[i + 6] |
                   words[i + 7];
    if (any != 0) return false;
  }
  return true;
}

// Goes up the list of used ranges.
class UsedPages {
 public:
  UsedPages(const HeapRange* ranges, size_t count) : at_(ranges), end_(ranges + count) {}
  bool has(uint64_t page) {
    while (at_ != end_ && at_->high <= page) ++at_;
    return at_ != end_ && at_->low < page + kPage;
  }

 private:
  const HeapRange* at_;
  const HeapRange* end_;
};

void copy_pages(uint64_t low, uint64_t high) {
  if (low == high) return;
  constexpr int kPopulateWrite = 23;  // Linux 5.14; without it each page faults by itself
  madvise(g_twin.at(low), high - low, kPopulateWrite);
  memcpy(g_twin.at(low), reinterpret_cast<const void*>(low), high - low);
}

// 0 or errno.
int convert_chunk(int pagemap, const HeapRange& chunk, UsedPages* used, ConversionResult* result) {
  uint64_t bytes = chunk.high - chunk.low;
  if (mprotect(reinterpret_cast<void*>(chunk.low), bytes, PROT_READ) != 0) return errno;
  if (!chunk.file) read_pagemap(pagemap, chunk.low, chunk.high);
  uint64_t first = chunk.low;  // [first, page) is to be copied
  for (uint64_t page = chunk.low; page < chunk.high; page += kPage) {
    bool touched = chunk.file || (g_pagemap[(page - chunk.low) / kPage] & kPresentOrSwapped) != 0;
    // A page that was only read is the kernel's zero page.
    if (touched && used->has(page) && !is_zero(page)) {
      result->copied += kPage;
      continue;
    }
    copy_pages(first, page);
    first = page + kPage;
  }
  copy_pages(first, chunk.high);
  int error = g_twin.map_plain(chunk.low, bytes);
  if (error != 0) mprotect(reinterpret_cast<void*>(chunk.low), bytes, PROT_READ | PROT_WRITE);
  return error;
}

}  // namespace

ConversionResult HeapConversion::run(const Heap& heap, TwinUse twin) {
  ConversionResult result;
  HeapMappingsLock lock;
  result.error = adopt_heap(heap.low, heap.high, twin);
  if (result.error != 0) return result;
  g_gate.begin_again();
  g_low.store(heap.low, std::memory_order_relaxed);
  g_high.store(heap.high, std::memory_order_relaxed);
  g_running.store(true, std::memory_order_release);
  int pagemap = static_cast<int>(
      raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC));
  UsedPages used(heap.used, heap.used_count);
  for (size_t i = 0; i < heap.committed_count && result.error == 0 && g_twin.created(); ++i) {
    const HeapRange& range = heap.committed[i];
    for (uint64_t at = range.low; at < range.high && result.error == 0;) {
      uint64_t end = range.high - at < kChunkBytes ? range.high : at + kChunkBytes;
      // Shared since an earlier recording.
      if (!heap_is_shared(at, end)) result.error = convert_chunk(pagemap, {at, end, range.file}, &used, &result);
      at = end;
    }
  }
  if (pagemap >= 0) close(pagemap);
  for (size_t i = 0; i < heap.committed_count && result.error == 0; ++i) {
    result.error = adopt_commit(heap.committed[i].low, heap.committed[i].high);
    result.committed += heap.committed[i].high - heap.committed[i].low;
  }
  g_running.store(false, std::memory_order_release);
  return result;
}

bool HeapConversion::wait(uint64_t address, uint64_t pc) {
  uint64_t low = g_low.load(std::memory_order_relaxed);
  if (address - low >= g_high.load(std::memory_order_relaxed) - low) return false;
  if (g_running.load(std::memory_order_acquire)) {
    while (g_running.load(std::memory_order_acquire)) raw_sleep(100000);
    return true;
  }
  // It may have ended between the fault and here: once more, but not for ever.
  if (t_retried_address == address && t_retried_pc == pc) return false;
  t_retried_address = address;
  t_retried_pc = pc;
  return true;
}

}  // namespace classaccess
