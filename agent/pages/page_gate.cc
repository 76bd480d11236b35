#include "agent/pages/page_gate.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/protection_key.h"

namespace classaccess {
namespace {

constexpr long kOpen = PROT_READ | PROT_WRITE;

constexpr int kClosed = -1;  // else a key: 0, or that of a slot

int change(uint64_t low, uint64_t bytes, int key) {
  auto at = static_cast<long>(low);
  auto size = static_cast<long>(bytes);
  long result = 0;
  if (g_gate.per_thread()) {
    result = raw_syscall(SYS_pkey_mprotect, at, size, kOpen, key == kClosed ? g_key.key() : key);
  } else {
    result = raw_syscall(SYS_mprotect, at, size, key == kClosed ? PROT_NONE : kOpen);
  }
  return static_cast<int>(-result);
}

int change_armed(uint64_t low, uint64_t high, int key) {
  int error = 0;
  for (uint64_t page = low; page < high;) {
    uint64_t run = g_armed.armed_ahead(page, high - page);
    if (run == 0) {
      page += ArmedPages::kPageBytes;
      continue;
    }
    int refused = change(page, run, key);
    if (error == 0) error = refused;
    page += run;
  }
  return error;
}

}  // namespace

int PageGate::open(uint64_t low, uint64_t high) { return change_armed(low, high, 0); }
int PageGate::close(uint64_t low, uint64_t high) { return change_armed(low, high, kClosed); }
int PageGate::give_key(uint64_t low, uint64_t high, uint32_t slot) {
  return change_armed(low, high, g_key.page_key(slot));
}

}  // namespace classaccess
