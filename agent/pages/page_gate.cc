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

int change(uint64_t low, uint64_t bytes, bool open) {
  auto at = static_cast<long>(low);
  auto size = static_cast<long>(bytes);
  long result = 0;
  if (g_gate.per_thread()) {
    result = raw_syscall(SYS_pkey_mprotect, at, size, kOpen, open ? 0 : g_key.key());
  } else {
    result = raw_syscall(SYS_mprotect, at, size, open ? kOpen : PROT_NONE);
  }
  return static_cast<int>(-result);
}

int change_armed(uint64_t low, uint64_t high, bool open) {
  int error = 0;
  for (uint64_t page = low; page < high;) {
    uint64_t run = g_armed.armed_ahead(page, high - page);
    if (run == 0) {
      page += ArmedPages::kPageBytes;
      continue;
    }
    int refused = change(page, run, open);
    if (error == 0) error = refused;
    page += run;
  }
  return error;
}

}  // namespace

int PageGate::open(uint64_t low, uint64_t high) { return change_armed(low, high, true); }
int PageGate::close(uint64_t low, uint64_t high) { return change_armed(low, high, false); }

}  // namespace classaccess
