// System calls on heap memory: read, write and their relatives, send, recv and theirs,
// fread and fwrite, called with a pointer into the heap.
//
// A foreign function called with Linker.Option.critical(true) (JDK 22 and later) gets the
// address of a heap segment's bytes. The kernel refuses closed pages with EFAULT, whatever
// closes them, and there is no fault to handle. So the C library's functions are replaced
// (library_hooks.h) by ones that pass the twin's address on, and record what the kernel
// has touched, the call's site being its caller. The thread stays in Java state all the
// while, so nothing moves. Pointers not into committed heap pass unchanged.
// Context: add: VMInit. The functions run on the calling thread, also in its signal
// handlers: no lock, no allocation, errno as the original left it.
#pragma once

#include "agent/fault/access_path.h"

namespace classaccess {

// Adds the hooks. `access` outlives the process's calls.
bool add_system_call_hooks(AccessPath* access);

}  // namespace classaccess
