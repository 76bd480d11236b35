#include "agent/cli/tracee.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace classaccess {

bool Tracee::read(uint64_t address, void* to, size_t bytes) const {
  iovec local = {to, bytes}, remote = {reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool Tracee::write(uint64_t address, const void* from, size_t bytes) const {
  auto* in = static_cast<const char*>(from);
  for (size_t done = 0; done < bytes; done += 8) {
    size_t part = bytes - done < 8 ? bytes - done : 8;
    errno = 0;
    long word = part < 8 ? ptrace(PTRACE_PEEKDATA, pid_, address + done, 0) : 0;
    if (errno != 0) return false;
    memcpy(&word, in + done, part);
    if (ptrace(PTRACE_POKEDATA, pid_, address + done, word) != 0) return false;
  }
  return true;
}

bool Tracee::registers(user_regs_struct* to) const { return ptrace(PTRACE_GETREGS, pid_, 0, to) == 0; }
bool Tracee::set_registers(const user_regs_struct& from) const { return ptrace(PTRACE_SETREGS, pid_, 0, &from) == 0; }

int Tracee::wait() {
  int status = 0;
  while (waitpid(pid_, &status, __WALL) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

int Tracee::go_on(int signal) {
  if (ptrace(PTRACE_CONT, pid_, 0, signal) != 0) return -1;
  return wait();
}

long Tracee::system_call(uint64_t at, long number, long a, long b, long c, long d, long e, long f) {
  user_regs_struct before, regs;
  uint8_t original[2];
  const uint8_t instruction[2] = {0x0f, 0x05};  // syscall
  if (!registers(&before) || !read(at, original, 2) || !write(at, instruction, 2)) return -EIO;
  regs = before;
  regs.rip = at;
  regs.rax = static_cast<unsigned long long>(number);
  regs.orig_rax = ~0ull;  // no system call to be restarted
  regs.rdi = static_cast<unsigned long long>(a);
  regs.rsi = static_cast<unsigned long long>(b);
  regs.rdx = static_cast<unsigned long long>(c);
  regs.r10 = static_cast<unsigned long long>(d);
  regs.r8 = static_cast<unsigned long long>(e);
  regs.r9 = static_cast<unsigned long long>(f);
  long result = -EIO;
  if (set_registers(regs)) {
    for (int tries = 0; tries < 100; ++tries) {
      if (ptrace(PTRACE_SINGLESTEP, pid_, 0, 0) != 0) break;
      int status = wait();
      if (status < 0 || !WIFSTOPPED(status)) return -ESRCH;
      user_regs_struct now;
      if (registers(&now) && now.rip == at + 2) {
        result = static_cast<long>(now.rax);
        break;
      }
      if (WSTOPSIG(status) != SIGTRAP) kept_.push_back(WSTOPSIG(status));
    }
  }
  write(at, original, 2);
  set_registers(before);
  return result;
}

void Tracee::send_kept() {
  for (int signal : kept_) syscall(SYS_tgkill, pid_, pid_, signal);
  kept_.clear();
}

}  // namespace classaccess
