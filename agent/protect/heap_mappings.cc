#include "agent/protect/heap_mappings.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

#include "agent/base/counters.h"
#include "agent/base/wake.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/code_cache_room.h"
#include "agent/protect/got_patch.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"

namespace classaccess {

void (*g_on_uncommit)(uint64_t low, uint64_t high) = nullptr;

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
bool g_hooked;

// Since Linux 5.14; include/uapi/asm-generic/mman-common.h
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

std::atomic_flag g_lock = ATOMIC_FLAG_INIT;
TwinUse g_twin_use;
// Pages that are mapped from the twin's memfd, also those the VM has closed by mprotect.
ArmedPages g_shared;

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
  g_state.error = adopt_heap(found->low, found->high, g_twin_use);
}

bool in_heap(uint64_t address, uint64_t bytes) {
  return g_state.found && address >= g_state.low && address + bytes <= g_state.high;
}

uint64_t page_end(uint64_t address) { return (address + 4095) & ~4095ull; }

void forget_commit(uint64_t low, uint64_t high) {
  g_armed.clear(low, high);
  g_committed.clear(low, high);
  if (g_on_uncommit != nullptr) g_on_uncommit(low, high);
}

// Archived objects (CDS): a private file mapping has no twin, so the file is read in. 0 or errno.
int read_in(uint64_t address, size_t bytes, int fd, off64_t offset) {
  for (size_t got = 0; got < bytes;) {
    ssize_t n = pread64(fd, g_twin.at(address + got), bytes - got, offset + static_cast<off64_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return 0;
}

// The plain view of [address, end) is what the VM asked for, readable and writable.
void* commit(uint64_t address, size_t bytes, int prot, int flags, int fd, off64_t offset) {
  uint64_t end = page_end(address + bytes);
  int error = 0;
  if (g_twin.created()) {
    error = g_twin.commit(address, end - address);
    if (error == 0 && (flags & MAP_ANONYMOUS) == 0) error = read_in(address, bytes, fd, offset);
  } else if (g_mmap(reinterpret_cast<void*>(address), bytes, prot, flags, fd, offset) == MAP_FAILED) {
    return MAP_FAILED;
  }
  if (error == 0) error = adopt_commit(address, end);
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
  HeapMappingsLock lock;
  bool fixed = (flags & MAP_FIXED) != 0;
  bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  bool read_write = (prot & (PROT_READ | PROT_WRITE | PROT_EXEC)) == (PROT_READ | PROT_WRITE);
  if (!g_state.found && g_state.error == 0 && fixed && anonymous && (prot & PROT_WRITE) != 0) {
    recognise(address, bytes, (prot & PROT_EXEC) != 0);
  }
  if (fixed && in_heap(address, bytes)) {
    if (read_write) return commit(address, bytes, prot, flags, fd, offset);
    forget_commit(address, page_end(address + bytes));
    void* got = g_mmap(to, bytes, prot, flags, fd, offset);
    if (got != MAP_FAILED) {
      g_shared.clear(address, page_end(address + bytes));
      g_twin.discard(address, page_end(address + bytes) - address);
      count(g_counters.uncommits);
    }
    return got;
  }
  void* got = MAP_FAILED;
  if (to == nullptr && prot == PROT_NONE && anonymous) {
    if (uint64_t inner = reserve_with_room(bytes)) got = reinterpret_cast<void*>(inner);
  }
  if (got == MAP_FAILED) got = g_mmap(to, bytes, prot, flags, fd, offset);
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
  HeapMappingsLock lock;
  if (in_heap(address, bytes)) {
    forget_commit(address, page_end(address + bytes));
    g_shared.clear(address, page_end(address + bytes));
    g_twin.discard(address, page_end(address + bytes) - address);
  } else if (!g_state.found) {
    forget(address, page_end(address + bytes));
  }
  return g_munmap(from, bytes);
}

// Commits what of [low, high) was reserved only: as a private page it would have no twin.
int commit_reserved(uint64_t low, uint64_t high) {
  for (uint64_t page = low; page < high;) {
    uint64_t shared = g_shared.armed_ahead(page, high - page);
    page += shared;
    uint64_t first = page;
    while (page < high && !g_shared.armed(page)) page += ArmedPages::kPageBytes;
    if (first == page) continue;
    if (int error = g_twin.commit(first, page - first); error != 0) return error;
    g_shared.set(first, page);
  }
  return 0;
}

int hooked_mprotect(void* at, size_t bytes, int prot) {
  auto address = reinterpret_cast<uint64_t>(at);
  HeapMappingsLock lock;
  if (!in_heap(address, bytes)) return g_mprotect(at, bytes, prot);
  uint64_t end = page_end(address + bytes);
  bool read_write = (prot & (PROT_READ | PROT_WRITE | PROT_EXEC)) == (PROT_READ | PROT_WRITE);
  if (!read_write) {
    // Neither committed nor reserved (read-only, say): a fault there is the VM's business,
    // and nothing is recorded. The key would refuse what is permitted.
    forget_commit(address, end);
    if (g_gate.per_thread()) return static_cast<int>(syscall(SYS_pkey_mprotect, at, bytes, prot, 0));
    return g_mprotect(at, bytes, prot);
  }
  int error = g_twin.created() ? commit_reserved(address, end) : 0;
  if (error == 0 && g_mprotect(at, bytes, prot) != 0) return -1;
  if (error == 0) error = adopt_commit(address, end);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int hooked_madvise(void* at, size_t bytes, int advice) {
  auto address = reinterpret_cast<uint64_t>(at);
  HeapMappingsLock lock;
  if (!in_heap(address, bytes)) return g_madvise(at, bytes, advice);
  if (!g_twin.created()) {
    AgentScope scope;  // to populate, the kernel asks for this thread's right
    return g_madvise(at, bytes, advice);
  }
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
      // On a shared mapping these would leave the old contents in place.
      g_twin.discard(address, bytes);
      return 0;
    case MADV_DOFORK: return 0;  // a child would write into the parent's objects
    case kPopulateRead:
    case kPopulateWrite:
      // The plain view may be closed for this thread.
      return g_madvise(g_twin.at(address), bytes, advice);
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE: g_madvise(g_twin.at(address), bytes, advice); return g_madvise(at, bytes, advice);
    default: return g_madvise(at, bytes, advice);
  }
}

bool hook(const char* name, void* replacement, void** original) {
  return patch_got(g_libjvm_address, name, replacement, original) != 0;
}

// Empty string or the reason.
const char* install_hooks() {
  if (g_hooked) return "";
  void* symbol = dlsym(RTLD_DEFAULT, "gHotSpotVMStructs");
  if (symbol == nullptr) return "libjvm was not found";
  g_libjvm_address = reinterpret_cast<uint64_t>(symbol);
  g_mmap = mmap64;
  g_munmap = munmap;
  g_mprotect = mprotect;
  g_madvise = madvise;
  bool mapped = hook("mmap64", reinterpret_cast<void*>(hooked_mmap), reinterpret_cast<void**>(&g_mmap)) ||
                hook("mmap", reinterpret_cast<void*>(hooked_mmap), reinterpret_cast<void**>(&g_mmap));
  if (!mapped) return "libjvm does not import mmap64";
  if (!hook("munmap", reinterpret_cast<void*>(hooked_munmap), reinterpret_cast<void**>(&g_munmap))) {
    return "libjvm does not import munmap";
  }
  hook("mprotect", reinterpret_cast<void*>(hooked_mprotect), reinterpret_cast<void**>(&g_mprotect));
  hook("madvise", reinterpret_cast<void*>(hooked_madvise), reinterpret_cast<void**>(&g_madvise));
  g_hooked = true;
  return "";
}

}  // namespace

HeapMappingsLock::HeapMappingsLock() {
  // A conversion holds it for a while.
  for (int tries = 0; g_lock.test_and_set(std::memory_order_acquire); ++tries) {
    if (tries > 1000) raw_sleep(100000);
  }
}
HeapMappingsLock::~HeapMappingsLock() { g_lock.clear(std::memory_order_release); }

int adopt_heap(uint64_t low, uint64_t high, TwinUse twin) {
  bool known = g_state.found && g_state.low == low && g_state.high == high;
  if (!known && (!g_armed.create(low, high) || !g_committed.create(low, high) || !g_shared.create(low, high)))
    return errno;
  if (twin != TwinUse::kOff && !g_twin.created() && !g_twin.create(low, high) && twin == TwinUse::kRequired)
    return errno;
  if (!g_twin.created()) count(g_counters.no_twin);
  g_state.low = low;
  g_state.high = high;
  g_state.found = true;
  return 0;
}

int adopt_commit(uint64_t low, uint64_t high) {
  if (g_twin.created()) g_shared.set(low, high);
  g_committed.set(low, high);
  // What the heap= option closes of it.
  if (low < g_armed.limit_low()) low = g_armed.limit_low();
  if (high > g_armed.limit_high()) high = g_armed.limit_high();
  return low < high ? g_gate.close_range(low, high) : 0;
}

bool heap_is_shared(uint64_t low, uint64_t high) {
  return g_twin.created() && g_shared.armed_ahead(low, high - low) == high - low;
}

const char* install_heap_mappings(uint64_t max_heap_bytes, TwinUse twin) {
  g_max_heap_bytes = max_heap_bytes;
  g_twin_use = twin;
  return install_hooks();
}

const char* install_late_heap_mappings() {
  g_max_heap_bytes = ~0ull;  // no reservation is taken for the heap any more
  return install_hooks();
}

void remove_heap_mappings() {
  if (g_libjvm_address == 0) return;
  g_hooked = false;
  patch_got(g_libjvm_address, "mmap64", reinterpret_cast<void*>(g_mmap), nullptr);
  patch_got(g_libjvm_address, "mmap", reinterpret_cast<void*>(g_mmap), nullptr);
  patch_got(g_libjvm_address, "munmap", reinterpret_cast<void*>(g_munmap), nullptr);
  patch_got(g_libjvm_address, "mprotect", reinterpret_cast<void*>(g_mprotect), nullptr);
  patch_got(g_libjvm_address, "madvise", reinterpret_cast<void*>(g_madvise), nullptr);
}

HeapMappingState heap_mapping_state() {
  HeapMappingsLock lock;
  return g_state;
}

}  // namespace classaccess
