// The functions of loaded libraries, from the files' .symtab and .dynsym and from separate debug files where those
// are installed.
// Context: no signal handler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/calls/native/prologue.h"

namespace classaccess {

struct LoadedLibrary {
  std::string path;  // as the dynamic linker has it; of the program: its own
  std::string name;  // file name
  uint64_t base = 0;
  uint64_t low = 0, high = 0;  // of its code
};

// All but the kernel's and our own. *loads: the dynamic linker's count of loads, of unloads.
std::vector<LoadedLibrary> loaded_libraries();
// Changes when a library is loaded or unloaded.
uint64_t library_changes();

struct FoundFunction {
  std::string name;
  FunctionCode code;
  bool ifunc = false;  // code.entry is the resolver's
};

// Every function that its tables name, by address; each address once, under each of its names.
std::vector<FoundFunction> functions_of(const LoadedLibrary& library);

// `*` and `?`, and sets in brackets.
bool matches_glob(const std::string& pattern, const std::string& text);

}  // namespace classaccess
