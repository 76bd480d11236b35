// Preloaded: takes every protection key of the process before anybody else can.
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void take_all() {
  while (syscall(SYS_pkey_alloc, 0ul, 0ul) >= 0) {
  }
}
