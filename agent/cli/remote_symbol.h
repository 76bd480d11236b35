// Addresses of functions in another process, from its mappings and the files' symbol tables.
// Context: the classaccess command.
#pragma once

#include <cstdint>
#include <string>

namespace classaccess {

// A library's file is mapped in the process: its path ends with `/NAME` (or `/NAME.` and more).
bool is_mapped(int pid, const std::string& name);

// The address of a function that one of the C library's files exports (libc.so.6, and
// libdl.so.2 before glibc 2.34); 0: none.
uint64_t remote_function(int pid, const std::string& function);

// An entry of the process's auxiliary vector; 0: none.
uint64_t auxiliary_value(int pid, uint64_t type);

}  // namespace classaccess
