// Replaces entries of a loaded library's GOT (JUMP_SLOT and GLOB_DAT relocations).
// Context: start only; no signal handler. The GOT page is made writable for the
// store (libjvm is linked with BIND_NOW and RELRO).
#pragma once

#include <cstdint>

namespace classaccess {

// Puts `replacement` into every slot of `name` in the library that contains
// `address`. Returns how many slots were changed; *original gets the old value of
// the first one.
int patch_got(uint64_t address, const char* name, void* replacement, void** original);

}  // namespace classaccess
