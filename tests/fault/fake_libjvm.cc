#include <sys/mman.h>

#pragma GCC visibility push(default)
#include "tests/fault/fake_libjvm.h"
extern "C" {
void* gHotSpotVMStructs = nullptr;
}
#pragma GCC visibility pop

extern "C" {
void* fake_mmap(void* at, size_t bytes, int prot, int flags, int fd, off64_t offset) {
  return mmap64(at, bytes, prot, flags, fd, offset);
}
int fake_munmap(void* at, size_t bytes) { return munmap(at, bytes); }
int fake_mprotect(void* at, size_t bytes, int prot) { return mprotect(at, bytes, prot); }
int fake_madvise(void* at, size_t bytes, int advice) { return madvise(at, bytes, advice); }
}
