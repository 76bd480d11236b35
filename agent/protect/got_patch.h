// Replaces entries of a loaded library's GOT (JUMP_SLOT and GLOB_DAT relocations).
// Context: start only; no signal handler. A RELRO page (libjvm is linked with BIND_NOW) is
// made writable for the store; any other is writable and stays so.
#pragma once

#include <cstdint>

namespace classaccess {

// Puts `replacement` into every slot of `name` in the library that contains
// `address`. Returns how many slots were changed; *original gets the old value of
// the first one, unless that is not bound yet (calling it would undo the patch): preset it.
int patch_got(uint64_t address, const char* name, void* replacement, void** original);

}  // namespace classaccess
