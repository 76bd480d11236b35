#include "agent/calls/native/shadow_stack.h"

#include <errno.h>
#include <sys/syscall.h>

#include <fstream>
#include <iterator>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

// Linux, arch/x86/include/uapi/asm/prctl.h.
constexpr long kShadowStackStatus = 0x5005;
constexpr uint64_t kShadowStack = 1;

ShadowStackAnswer ask() {
  ShadowStackAnswer answer;
  answer.error = raw_syscall(SYS_arch_prctl, kShadowStackStatus, reinterpret_cast<long>(&answer.features));
  // EINVAL: a kernel without shadow stacks. Anything else: a filter of system calls.
  if (answer.error != 0 && answer.error != -EINVAL) {
    std::ifstream status("/proc/thread-self/status");
    answer.status.assign(std::istreambuf_iterator<char>(status), {});
  }
  return answer;
}

}  // namespace

ShadowStackAnswer (*g_ask_shadow_stack)() = ask;

bool has_shadow_stack(const ShadowStackAnswer& answer) {
  if (answer.error == 0) return (answer.features & kShadowStack) != 0;
  const size_t line = answer.status.find("x86_Thread_features:");
  if (line == std::string::npos) return false;
  const std::string features = answer.status.substr(line, answer.status.find('\n', line) - line);
  return features.find("shstk") != std::string::npos;
}

}  // namespace classaccess
