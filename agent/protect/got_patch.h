// Replaces entries of a loaded library's GOT (JUMP_SLOT and GLOB_DAT relocations).
// Context: no signal handler. A RELRO page (libjvm is linked with BIND_NOW) is
// made writable for the store; any other is writable and stays so.
#pragma once

#include <link.h>

#include <cstdint>

namespace classaccess {

// Puts `replacement` into every slot of `name` in the library that contains
// `address`. Returns how many slots were changed; *original gets the old value of
// the first one, unless that is not bound yet (calling it would undo the patch): preset it.
int patch_got(uint64_t address, const char* name, void* replacement, void** original);

// One loaded library, as dl_iterate_phdr tells of it (dlpi_addr, dlpi_phdr, dlpi_phnum).
struct LoadedObject {
  uint64_t base = 0;
  const ElfW(Phdr) * segments = nullptr;
  int segment_count = 0;
};

// Slots of `name` that hold `from` are to hold `to`; others belong to another function of
// that name. `unbound`: those that are not bound yet too.
struct GotChange {
  const char* name;
  void* from;
  void* to;
  bool unbound;
};

// Takes no lock of the dynamic linker. Another thread may be in the middle of loading the
// object: a slot in RELRO whose page is not `is_read_only` yet is left as it is. Without
// that function every object is taken to be loaded. False if a slot was left.
bool patch_object(const LoadedObject& object, const GotChange* changes, int count,
                  bool (*is_read_only)(const void* address));

}  // namespace classaccess
