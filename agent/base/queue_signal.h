// A signal with a value, queued to one thread of this process.
// Context: signal handler and any thread; one system call.
#pragma once

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include <cstdint>

#include "agent/base/raw_syscall.h"

namespace classaccess {

// 0 or -errno: -EAGAIN if the queue has no room, -ESRCH if the thread is gone.
inline long queue_signal(int32_t tid, int signal, void* value) {
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_value.sival_ptr = value;
  const long pid = raw_syscall(SYS_getpid);
  return raw_syscall(SYS_rt_tgsigqueueinfo, pid, tid, signal, reinterpret_cast<long>(&info));
}

}  // namespace classaccess
