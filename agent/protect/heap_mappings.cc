#include "agent/protect/heap_mappings.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

#include "agent/base/counters.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/got_patch.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

using MmapFunction = void* (*)(void*, size_t, int, int, int, off64_t);
using MunmapFunction = int (*)(void*, size_t);
using MprotectFunction = int (*)(void*, size_t, int);
using MadviseFunction = int (*)(void*, size_t, int);

MmapFunction g_mmap;
MunmapFunction g_munmap;
MprotectFunction g_mprotect;
MadviseFunction g_madvise;
uint64_t g_libjvm_address;

std::atomic_flag g_lock = ATOMIC_FLAG_INIT;
struct SpinScope {
  SpinScope() {
    while (g_lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~SpinScope() { g_lock.clear(std::memory_order_release); }
};

// Reservations that may turn out to be the heap, until its first commit.
struct Reservation {
  uint64_t low = 0, high = 0;
  uint64_t order = 0;  // of the mmap call
};
constexpr int kMaxReservations = 64;
Reservation g_reservations[kMaxReservations];
int g_reservation_count;
uint64_t g_reservation_order;
uint64_t g_max_heap_bytes;
HeapMappingState g_state;

// Forgets [low, high) of the candidates; HotSpot reserves too much and trims, or
// gives a misplaced attempt back.
void forget(uint64_t low, uint64_t high) {
  for (int i = 0; i < g_reservation_count; ++i) {
    Reservation& r = g_reservations[i];
    if (high <= r.low || low >= r.high) continue;
    if (low <= r.low) {
      r.low = high < r.high ? high : r.high;
    } else {
      r.high = low;
    }
  }
}

void remember(uint64_t low, uint64_t bytes) {
  forget(low, low + bytes);
  int free = 0;
  while (free < g_reservation_count && g_reservations[free].low != g_reservations[free].high) ++free;
  if (free == kMaxReservations) return;
  if (free == g_reservation_count) ++g_reservation_count;
  g_reservations[free] = {low, low + bytes, ++g_reservation_order};
}

// The heap is the first reservation of its size whose commits are not executable: the
// code cache comes before it, and what comes after (G1's own tables can be as large)
// may be committed before it.
void recognise(uint64_t address, uint64_t bytes, bool executable) {
  const Reservation* found = nullptr;
  bool first = true;
  for (int i = 0; i < g_reservation_count; ++i) {
    Reservation& r = g_reservations[i];
    if (address < r.low || address + bytes > r.high || r.high - r.low < g_max_heap_bytes) continue;
    found = &r;
    if (executable) {
      r = {};
      return;
    }
  }
  if (found == nullptr || executable) return;
  for (int i = 0; i < g_reservation_count; ++i) {
    const Reservation& r = g_reservations[i];
    if (r.high - r.low >= g_max_heap_bytes && r.order < found->order) first = false;
  }
  if (!first) return;
  if (!g_armed.create(found->low, found->high) || !g_committed.create(found->low, found->high) ||
      !g_twin.create(found->low, found->high)) {
    g_state.error = errno;
    return;
  }
  g_state.low = found->low;
  g_state.high = found->high;
  g_state.found = true;
}

bool in_heap(uint64_t address, uint64_t bytes) {
  return g_state.found && address >= g_state.low && address + bytes <= g_state.high;
}

uint64_t page_end(uint64_t address) { return (address + 4095) & ~4095ull; }

void forget_commit(uint64_t low, uint64_t high) {
  g_armed.clear(low, high);
  g_committed.clear(low, high);
}

// Tags what the heap= option closes of [low, high).
int close_range(uint64_t low, uint64_t high) {
  if (low < g_armed.limit_low()) low = g_armed.limit_low();
  if (high > g_armed.limit_high()) high = g_armed.limit_high();
  if (low >= high) return 0;
  return g_gate.close_range(low, high);
}

void* commit(uint64_t address, size_t bytes, int fd, off64_t offset) {
  uint64_t end = page_end(address + bytes);
  int error = g_twin.commit(address, end - address);
  // Archived objects (CDS): read in, since a private file mapping has no twin.
  for (size_t got = 0; error == 0 && fd >= 0 && got < bytes;) {
    ssize_t n = pread64(fd, g_twin.at(address + got), bytes - got, offset + static_cast<off64_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  if (error == 0) {
    g_committed.set(address, end);
    error = close_range(address, end);
  }
  if (error != 0) {
    g_state.error = error;
    errno = error;
    return MAP_FAILED;
  }
  count(g_counters.commits);
  return reinterpret_cast<void*>(address);
}

void* hooked_mmap(void* to, size_t bytes, int prot, int flags, int fd, off64_t offset) {
  auto address = reinterpret_cast<uint64_t>(to);
  SpinScope scope;
  bool fixed = (flags & MAP_FIXED) != 0;
  bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  bool read_write = (prot & (PROT_READ | PROT_WRITE | PROT_EXEC)) == (PROT_READ | PROT_WRITE);
  if (!g_state.found && g_state.error == 0 && fixed && anonymous && (prot & PROT_WRITE) != 0) {
    recognise(address, bytes, (prot & PROT_EXEC) != 0);
  }
  if (fixed && in_heap(address, bytes)) {
    if (read_write) return commit(address, bytes, anonymous ? -1 : fd, offset);
    forget_commit(address, page_end(address + bytes));
    void* got = g_mmap(to, bytes, prot, flags, fd, offset);
    if (got != MAP_FAILED) {
      g_twin.discard(address, page_end(address + bytes) - address);
      count(g_counters.uncommits);
    }
    return got;
  }
  void* got = g_mmap(to, bytes, prot, flags, fd, offset);
  if (got != MAP_FAILED && !g_state.found) {
    auto low = reinterpret_cast<uint64_t>(got);
    if (prot == PROT_NONE && anonymous && !fixed && bytes >= g_max_heap_bytes) {
      remember(low, bytes);
    }
  }
  return got;
}

int hooked_munmap(void* from, size_t bytes) {
  auto address = reinterpret_cast<uint64_t>(from);
  SpinScope scope;
  if (in_heap(address, bytes)) {
    forget_commit(address, page_end(address + bytes));
    g_twin.discard(address, page_end(address + bytes) - address);
  } else if (!g_state.found) {
    forget(address, page_end(address + bytes));
  }
  return g_munmap(from, bytes);
}

int hooked_mprotect(void* at, size_t bytes, int prot) {
  auto address = reinterpret_cast<uint64_t>(at);
  SpinScope scope;
  int result = g_mprotect(at, bytes, prot);
  if (result == 0 && in_heap(address, bytes)) {
    if (prot == PROT_NONE) {
      forget_commit(address, page_end(address + bytes));
    } else {
      g_committed.set(address, page_end(address + bytes));
      close_range(address, page_end(address + bytes));
    }
  }
  return result;
}

int hooked_madvise(void* at, size_t bytes, int advice) {
  auto address = reinterpret_cast<uint64_t>(at);
  SpinScope scope;
  if (in_heap(address, bytes) && (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)) {
    // On a shared mapping these would leave the old contents in place.
    g_twin.discard(address, bytes);
    return 0;
  }
  return g_madvise(at, bytes, advice);
}

}  // namespace

const char* install_heap_mappings(uint64_t max_heap_bytes) {
  void* symbol = dlsym(RTLD_DEFAULT, "gHotSpotVMStructs");
  if (symbol == nullptr) return "libjvm was not found";
  g_libjvm_address = reinterpret_cast<uint64_t>(symbol);
  g_max_heap_bytes = max_heap_bytes;
  g_mmap = mmap64;
  g_munmap = munmap;
  g_mprotect = mprotect;
  g_madvise = madvise;
  if (patch_got(g_libjvm_address, "mmap64", reinterpret_cast<void*>(hooked_mmap), reinterpret_cast<void**>(&g_mmap)) ==
          0 &&
      patch_got(g_libjvm_address, "mmap", reinterpret_cast<void*>(hooked_mmap), reinterpret_cast<void**>(&g_mmap)) ==
          0) {
    return "libjvm does not import mmap64";
  }
  if (patch_got(g_libjvm_address, "munmap", reinterpret_cast<void*>(hooked_munmap),
                reinterpret_cast<void**>(&g_munmap)) == 0) {
    return "libjvm does not import munmap";
  }
  patch_got(g_libjvm_address, "mprotect", reinterpret_cast<void*>(hooked_mprotect),
            reinterpret_cast<void**>(&g_mprotect));
  patch_got(g_libjvm_address, "madvise", reinterpret_cast<void*>(hooked_madvise), reinterpret_cast<void**>(&g_madvise));
  return "";
}

void remove_heap_mappings() {
  if (g_libjvm_address == 0) return;
  patch_got(g_libjvm_address, "mmap64", reinterpret_cast<void*>(g_mmap), nullptr);
  patch_got(g_libjvm_address, "mmap", reinterpret_cast<void*>(g_mmap), nullptr);
  patch_got(g_libjvm_address, "munmap", reinterpret_cast<void*>(g_munmap), nullptr);
  patch_got(g_libjvm_address, "mprotect", reinterpret_cast<void*>(g_mprotect), nullptr);
  patch_got(g_libjvm_address, "madvise", reinterpret_cast<void*>(g_madvise), nullptr);
}

HeapMappingState heap_mapping_state() {
  SpinScope scope;
  return g_state;
}

}  // namespace classaccess
