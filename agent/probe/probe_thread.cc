#include "agent/probe/probe_thread.h"

#include "agent/base/thread_offset.h"

namespace classaccess {

__thread ProbeThread t_probe __attribute__((tls_model("initial-exec")));

int32_t probe_thread_offset() { return thread_offset(&t_probe); }

}  // namespace classaccess
