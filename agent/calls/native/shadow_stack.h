// User shadow stacks (CET): the processor keeps return addresses a second time and refuses replaced ones.
// Context: no signal handler.
#pragma once

#include <cstdint>
#include <string>

namespace classaccess {

// What the kernel says of the current thread. Tests put another answer in its place.
struct ShadowStackAnswer {
  long error = 0;         // of arch_prctl(ARCH_SHSTK_STATUS); negative: -errno
  uint64_t features = 0;  // its answer
  std::string status;     // /proc/thread-self/status, read only if the call is refused
};
extern ShadowStackAnswer (*g_ask_shadow_stack)();

// The threads of a process have one or not from their start on: the C library turns it on before main.
bool has_shadow_stack(const ShadowStackAnswer& answer);

}  // namespace classaccess
