// Which JavaThread is this kernel thread? Found in the VM's own thread list.
// Context: signal handler; safe loads only (the list may be replaced meanwhile; then
// the answer is "none" and the next trap asks again).
#pragma once

#include <cstdint>

#include "agent/heap/vm_layout.h"

namespace classaccess {

// JavaThread* of `tid`, or 0.
uint64_t find_java_thread(const VmLayout& layout, int32_t tid);

int32_t current_tid();

}  // namespace classaccess
