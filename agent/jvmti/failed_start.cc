#include "agent/jvmti/failed_start.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/base/raw_log.h"
#include "agent/protect/got_patch.h"

namespace classaccess {
namespace {

void (*g_at_end)();

void at_exit() { g_at_end(); }

[[noreturn]] void hooked_exit(int status) {
  g_at_end();
  _exit(status);
}

}  // namespace

void watch_process_end(uint64_t libjvm_address, void (*at_end)()) {
  g_at_end = at_end;
  atexit(at_exit);
  void* original = nullptr;
  if (patch_got(libjvm_address, "_exit", reinterpret_cast<void*>(hooked_exit), &original) == 0) {
    raw_log(LogLevel::kInfo, "libjvm does not import _exit: a start that fails may leave its database behind");
  }
}

}  // namespace classaccess
