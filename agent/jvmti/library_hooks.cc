#include "agent/jvmti/library_hooks.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "agent/calls/native/native_calls.h"
#include "agent/protect/got_patch.h"

namespace classaccess {
namespace {

constexpr int kMaxHooks = 64;
LibraryHook g_hooks[kMaxHooks];
GotChange g_changes[kMaxHooks];
int g_count = 0;
std::atomic<bool> g_installed{false};
// dlpi_adds when this thread (the writer: at its tick) has last patched everything. Per
// thread: what another thread has seen may have been half loaded.
__thread uint64_t t_seen_loads __attribute__((tls_model("initial-exec")));

// At the tick a library may be half loaded without a sign of it: it is looked at again.
constexpr int kScansAfterLoad = 5;
// A library that is never complete (its RELRO pages stay writable): after this many scans
// it is not looked at again until the next one is loaded.
constexpr int kFailedScans = 100;
std::atomic<uint64_t> g_given_up{0};

// Libraries that keep the functions they have: ours, and the one that has them.
uint64_t g_own_base, g_libc_base;

uint64_t base_of(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return 0;
  return map->l_addr;
}

// The read-only ranges of the process before a scan. A page that has become so meanwhile
// is taken for writable, and patched by a later scan.
class ReadOnlyPages {
 public:
  ReadOnlyPages() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long low, high;
      char rights[5];
      if (sscanf(line.c_str(), "%lx-%lx %4s", &low, &high, rights) == 3 && rights[1] == '-') {
        ranges_.push_back({low, high});
      }
    }
  }
  bool contains(uint64_t address) const {
    auto it = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                               [](uint64_t value, const Range& range) { return value < range.high; });
    return it != ranges_.end() && address >= it->low;
  }

 private:
  struct Range {
    uint64_t low, high;
  };
  std::vector<Range> ranges_;
};

struct Scan {
  const GotChange* changes;
  uint64_t loads = 0;
  bool complete = true;
};
thread_local const ReadOnlyPages* t_read_only __attribute__((tls_model("initial-exec"))) = nullptr;

bool is_read_only(const void* address) { return t_read_only->contains(reinterpret_cast<uint64_t>(address)); }

int count_loads(dl_phdr_info* info, size_t, void* loads) {
  *static_cast<uint64_t*>(loads) = info->dlpi_adds;
  return 1;
}

int patch_one(dl_phdr_info* info, size_t, void* context) {
  auto* scan = static_cast<Scan*>(context);
  scan->loads = info->dlpi_adds;
  if (info->dlpi_addr == g_own_base || info->dlpi_addr == g_libc_base) return 0;
  LoadedObject object = {info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
  scan->complete &= patch_object(object, scan->changes, g_count, is_read_only);
  return 0;
}

// The number of loads it has seen and dealt with; 0: some are not complete yet.
uint64_t patch_all(const GotChange* changes) {
  ReadOnlyPages pages;
  t_read_only = &pages;
  Scan scan{changes};
  dl_iterate_phdr(patch_one, &scan);
  t_read_only = nullptr;
  return scan.complete ? scan.loads : 0;
}

}  // namespace

// dlsym and dlvsym look at their caller (RTLD_NEXT, dlerror's thread aside), so the
// original is jumped to with the stack and registers as they came.
extern "C" {
__attribute__((visibility("hidden"))) void* classaccess_real_dlsym;
__attribute__((visibility("hidden"))) void* classaccess_real_dlvsym;
void* classaccess_dlsym(void* handle, const char* name);
void* classaccess_dlvsym(void* handle, const char* name, const char* version);

// What is to be returned in place of the original's answer; null: ask it.
__attribute__((visibility("hidden"), used)) void* classaccess_found(void* handle, const char* name,
                                                                    const char* version) {
  patch_new_libraries();
  hook_new_libraries();
  if (name == nullptr || handle == RTLD_NEXT || !g_installed.load(std::memory_order_acquire)) return nullptr;
  for (int i = 0; i < g_count; ++i) {
    if (strcmp(g_hooks[i].name, name) != 0) continue;
    void* found = version != nullptr
                      ? reinterpret_cast<decltype(&dlvsym)>(classaccess_real_dlvsym)(handle, name, version)
                      : reinterpret_cast<decltype(&dlsym)>(classaccess_real_dlsym)(handle, name);
    return found == g_changes[i].from ? g_hooks[i].replacement : nullptr;
  }
  return nullptr;
}
}

// dlsym has no third argument.
asm(R"(
  .text
  .hidden classaccess_dlsym
  .hidden classaccess_dlvsym

  .macro classaccess_lookup name, real, clear_third
  .p2align 4
  .globl \name
  .type \name,@function
\name:
  .cfi_startproc
  push %rdi
  .cfi_adjust_cfa_offset 8
  push %rsi
  .cfi_adjust_cfa_offset 8
  push %rdx
  .cfi_adjust_cfa_offset 8
  .if \clear_third
  xor %edx, %edx
  .endif
  call classaccess_found
  pop %rdx
  .cfi_adjust_cfa_offset -8
  pop %rsi
  .cfi_adjust_cfa_offset -8
  pop %rdi
  .cfi_adjust_cfa_offset -8
  test %rax, %rax
  jnz 1f
  jmp *\real(%rip)
1: ret
  .cfi_endproc
  .size \name, .-\name
  .endm

  classaccess_lookup classaccess_dlsym, classaccess_real_dlsym, 1
  classaccess_lookup classaccess_dlvsym, classaccess_real_dlvsym, 0
  .purgem classaccess_lookup
)");

bool add_library_hooks(const LibraryHook* hooks, int count) {
  if (g_count + count > kMaxHooks) return false;
  for (int i = 0; i < count; ++i) {
    void* function = dlsym(RTLD_DEFAULT, hooks[i].name);
    if (function == nullptr) continue;
    *hooks[i].original = function;
    g_hooks[g_count] = hooks[i];
    g_changes[g_count++] = {hooks[i].name, function, hooks[i].replacement, true};
  }
  return true;
}

void install_library_hooks() {
  const LibraryHook own[] = {
      {"dlsym", reinterpret_cast<void*>(classaccess_dlsym), &classaccess_real_dlsym},
      {"dlvsym", reinterpret_cast<void*>(classaccess_dlvsym), &classaccess_real_dlvsym},
  };
  if (!add_library_hooks(own, 2) || classaccess_real_dlsym == nullptr || classaccess_real_dlvsym == nullptr) return;
  g_own_base = base_of(reinterpret_cast<void*>(install_library_hooks));
  g_libc_base = base_of(reinterpret_cast<void*>(gnu_get_libc_version));
  g_installed.store(true, std::memory_order_release);
  t_seen_loads = 0;
  g_given_up.store(0, std::memory_order_relaxed);
  patch_new_libraries();
}

void patch_new_libraries() {
  if (!g_installed.load(std::memory_order_acquire)) return;
  uint64_t loads = 0;
  dl_iterate_phdr(count_loads, &loads);
  if (loads == t_seen_loads || loads == g_given_up.load(std::memory_order_relaxed)) return;
  t_seen_loads = patch_all(g_changes);
}

void patch_at_tick() {
  static uint64_t last = 0;
  static int again = 0, failed = 0;
  if (!g_installed.load(std::memory_order_acquire)) return;
  uint64_t loads = 0;
  dl_iterate_phdr(count_loads, &loads);
  if (loads != last) {
    last = loads;
    again = kScansAfterLoad;
    failed = 0;
  }
  if (again == 0) return;
  if (patch_all(g_changes) != 0) {
    --again;
  } else if (++failed == kFailedScans) {
    g_given_up.store(loads, std::memory_order_relaxed);
    again = 0;
  }
}

void remove_library_hooks() {
  if (!g_installed.exchange(false, std::memory_order_acq_rel)) return;
  GotChange back[kMaxHooks];
  for (int i = 0; i < g_count; ++i) {
    back[i] = {g_changes[i].name, g_changes[i].to, g_changes[i].from, false};
  }
  patch_all(back);
  g_count = 0;
}

}  // namespace classaccess
