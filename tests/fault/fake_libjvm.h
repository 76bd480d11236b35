// What heap_mappings needs of libjvm: gHotSpotVMStructs, and the four memory calls
// through its own GOT.
#pragma once

#include <sys/types.h>

#include <cstddef>

extern "C" {
void* fake_mmap(void* at, size_t bytes, int prot, int flags, int fd, off64_t offset);
int fake_munmap(void* at, size_t bytes);
int fake_mprotect(void* at, size_t bytes, int prot);
int fake_madvise(void* at, size_t bytes, int advice);
}
