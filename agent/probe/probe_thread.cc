#include "agent/probe/probe_thread.h"

namespace classaccess {

__thread ProbeThread t_probe __attribute__((tls_model("initial-exec")));

int32_t probe_thread_offset() {
  uint64_t fs;
  asm("mov %%fs:0, %0" : "=r"(fs));
  return static_cast<int32_t>(reinterpret_cast<uint64_t>(&t_probe) - fs);
}

}  // namespace classaccess
