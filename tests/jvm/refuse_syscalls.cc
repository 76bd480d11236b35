// Runs a command in which some system calls are refused, as in a container with a strict
// seccomp profile.
//   refuse_syscalls NAME[,NAME...] COMMAND [ARGUMENT...]
// NAME: memfd_create (EPERM), ptrace (EPERM), pkey_alloc (ENOSYS), pkey_alloc:EPERM.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace {

sock_filter statement(unsigned code, unsigned k) { return sock_filter{static_cast<unsigned short>(code), 0, 0, k}; }

void refuse(std::vector<sock_filter>* filter, long number, unsigned error) {
  filter->push_back(
      sock_filter{static_cast<unsigned short>(BPF_JMP | BPF_JEQ | BPF_K), 0, 1, static_cast<unsigned>(number)});
  filter->push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: refuse_syscalls NAME[,NAME...] COMMAND [ARGUMENT...]\n");
    return 2;
  }
  std::vector<sock_filter> filter{statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (char* name = strtok(argv[1], ","); name != nullptr; name = strtok(nullptr, ",")) {
    if (strcmp(name, "memfd_create") == 0) {
      refuse(&filter, SYS_memfd_create, EPERM);
    } else if (strcmp(name, "ptrace") == 0) {
      refuse(&filter, SYS_ptrace, EPERM);
    } else if (strcmp(name, "pkey_alloc") == 0) {
      refuse(&filter, SYS_pkey_alloc, ENOSYS);
    } else if (strcmp(name, "pkey_alloc:EPERM") == 0) {
      refuse(&filter, SYS_pkey_alloc, EPERM);
    } else {
      fprintf(stderr, "refuse_syscalls: unknown name %s\n", name);
      return 2;
    }
  }
  filter.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("refuse_syscalls: seccomp");
    return 3;
  }
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return 3;
}
