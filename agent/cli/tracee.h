// A stopped process, by ptrace: its memory, registers and system calls.
// Context: the helper of `classaccess run`, which has it seized.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <vector>

namespace classaccess {

class Tracee {
 public:
  explicit Tracee(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  bool read(uint64_t address, void* to, size_t bytes) const;
  // Also to pages that are not writable.
  bool write(uint64_t address, const void* from, size_t bytes) const;
  bool registers(user_regs_struct* to) const;
  bool set_registers(const user_regs_struct& from) const;

  // Goes on until it stops again; `signal` is delivered. The wait status, -1 if it is gone.
  int go_on(int signal = 0);
  int wait();

  // Has it make a system call, with the instruction bytes at `at` borrowed for it. The result,
  // or -errno. Signals that come meanwhile are kept for send_kept().
  long system_call(uint64_t at, long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);
  void send_kept();

 private:
  pid_t pid_;
  std::vector<int> kept_;
};

}  // namespace classaccess
