// Address -> library and demangled function, by our own reading of /proc/self/maps and
// the ELF files' .symtab (or .dynsym): never dladdr or dl_iterate_phdr, which take the
// loader's lock while an application thread that holds it may be waiting for the writer.
// Files are read with pread, not mapped: a file that is truncated meanwhile gives no
// name instead of a SIGBUS. Nothing a file says is believed before it is checked against
// the file's size; a damaged one gives no names.
// Context: writer thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace classaccess {

struct NativeSymbol {
  std::string library;  // file name without directory; empty if the address is in no file
  std::string symbol;   // demangled; empty if unknown
};

class NativeSymbols {
 public:
  NativeSymbols();
  ~NativeSymbols();

  NativeSymbol find(uint64_t address);

 private:
  struct Mapping;
  struct ElfFile;
  const Mapping* mapping_of(uint64_t address) const;
  void read_maps();
  ElfFile* file_of(const Mapping& mapping);

  std::vector<Mapping> mappings_;  // executable ones, in order of addresses
  std::vector<std::unique_ptr<ElfFile>> files_;
  uint64_t read_at_ns_ = 0;
};

}  // namespace classaccess
