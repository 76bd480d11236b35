#include "agent/fault/gs_base.h"

#include <sys/auxv.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

bool g_fsgsbase = false;

// arch/x86/include/uapi/asm/prctl.h
constexpr long kArchSetGs = 0x1001;
constexpr long kArchGetGs = 0x1004;

uint64_t read_base() {
  uint64_t base = 0;
  if (g_fsgsbase) {
    asm volatile(".byte 0xf3,0x48,0x0f,0xae,0xc8" : "=a"(base));  // rdgsbase rax
  } else {
    raw_syscall(SYS_arch_prctl, kArchGetGs, reinterpret_cast<long>(&base));
  }
  return base;
}

bool write_base(uint64_t base) {
  if (g_fsgsbase) {
    asm volatile(".byte 0xf3,0x48,0x0f,0xae,0xd8" : : "a"(base));  // wrgsbase rax
    return true;
  }
  // The kernel refuses a base outside user space, such as a negative distance.
  return raw_syscall(SYS_arch_prctl, kArchSetGs, static_cast<long>(base)) == 0;
}

}  // namespace

void init_gs_base() {
  constexpr unsigned long kHwcap2Fsgsbase = 2;
  g_fsgsbase = (getauxval(AT_HWCAP2) & kHwcap2Fsgsbase) != 0;
}

bool gs_base_is(int64_t distance) { return read_base() == static_cast<uint64_t>(distance); }

bool gs_base_ready(int64_t distance) {
  uint64_t wanted = static_cast<uint64_t>(distance);
  uint64_t base = read_base();
  if (base == wanted) return true;
  return base == 0 && write_base(wanted);
}

}  // namespace classaccess
