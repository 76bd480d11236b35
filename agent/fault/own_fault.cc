#include "agent/fault/own_fault.h"

#include <atomic>

#include "agent/base/raw_log.h"

// By the linker.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[] __attribute__((visibility("hidden")));

namespace classaccess {
namespace {

std::atomic<bool> g_named{false};
constexpr uint64_t kStackReach = 128 << 10;

}  // namespace

bool in_own_text(uint64_t pc) {
  return pc >= reinterpret_cast<uint64_t>(__ehdr_start) && pc < reinterpret_cast<uint64_t>(etext);
}

void name_own_fault(int signal, const siginfo_t* info, const ucontext_t* uc) {
  auto pc = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
  if (!in_own_text(pc) || info->si_code <= 0) return;
  auto address = reinterpret_cast<uint64_t>(info->si_addr);
  auto stack = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RSP]);
  if (address + kStackReach - stack < 2 * kStackReach) return;
  if (g_named.exchange(true, std::memory_order_relaxed)) return;
  raw_log(LogLevel::kError,
          "the agent's own code has failed: %s at +0x%lx, address 0x%lx, version %s; the database keeps what was "
          "committed, please report this line with the JVM's hs_err file",
          signal == SIGSEGV ? "SIGSEGV" : "SIGBUS", pc - reinterpret_cast<uint64_t>(__ehdr_start), address,
          CLASSACCESS_VERSION);
}

}  // namespace classaccess
