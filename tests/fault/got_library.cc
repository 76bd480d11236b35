// A library with calls through its GOT. `now`: relocated at load and read-only
// afterwards; `lazy`: its slots are filled at the first call.
#include <stdlib.h>
#include <unistd.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int got_library_pid() { return getpid(); }
EXPORT int got_library_parent() { return getppid(); }
EXPORT unsigned got_library_user() { return getuid(); }
EXPORT const void* got_library_pointer() { return reinterpret_cast<const void*>(&atol); }
int g_written = 1;
EXPORT int got_library_write(int value) { return g_written = value; }
