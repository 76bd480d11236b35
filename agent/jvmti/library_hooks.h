// Functions of the C library that programs reach another one under: by the GOT of every
// loaded library, now and later, and by dlsym, which is how JNI and the foreign function
// API find theirs (libjvm's os::dll_lookup). A library loaded later is patched at the
// first dlsym after it, System.load's search for JNI_OnLoad, or at the writer's next tick.
//
// Only slots that hold the C library's function (or that of a preloaded library, the first
// in the global scope) are changed; a library's own function of the name is not. Not
// covered: direct system calls, calls inside the C library, pointers taken before the
// start.
// Context: add, install, remove: VMInit; patch_new_libraries: any thread, no signal handler.
#pragma once

namespace classaccess {

struct LibraryHook {
  const char* name;
  void* replacement;
  void** original;  // set by install; stays null if there is no such function
};

// Both tables live as long as the process. False: too many hooks for this build.
bool add_library_hooks(const LibraryHook* hooks, int count);
// After the last add. Patches what is loaded.
void install_library_hooks();
// Libraries loaded since the last call. Cheap when there are none; takes the dynamic
// linker's list lock, during which no heap is touched and no constructor runs.
void patch_new_libraries();
// The same for libraries that no dlsym comes after. Writer's tick.
void patch_at_tick();
// The original functions again, and nothing is patched any more.
void remove_library_hooks();

}  // namespace classaccess
