#include "agent/cli/remote_symbol.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <vector>

namespace classaccess {
namespace {

struct Mapping {
  uint64_t low = 0, offset = 0;
  std::string path;
};

std::vector<Mapping> mappings(int pid) {
  std::vector<Mapping> all;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long low = 0, high = 0, offset = 0;
    size_t path = line.find('/');
    if (path == std::string::npos || sscanf(line.c_str(), "%lx-%lx %*s %lx", &low, &high, &offset) != 3) continue;
    all.push_back({low, offset, line.substr(path)});
  }
  return all;
}

bool is_named(const std::string& path, const std::string& name) {
  size_t slash = path.rfind('/');
  std::string file = path.substr(slash + 1);
  return file == name || file.rfind(name + ".", 0) == 0;
}

// The value of an exported function in an ELF file, 0: none.
uint64_t symbol_value(const std::string& path, const std::string& function) {
  std::ifstream file(path, std::ios::binary);
  std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (image.size() < sizeof(Elf64_Ehdr) || memcmp(image.data(), ELFMAG, SELFMAG) != 0) return 0;
  auto at = [&](uint64_t offset, uint64_t bytes) -> const char* {
    return offset <= image.size() && bytes <= image.size() - offset ? image.data() + offset : nullptr;
  };
  auto* header = reinterpret_cast<const Elf64_Ehdr*>(image.data());
  auto* sections =
      reinterpret_cast<const Elf64_Shdr*>(at(header->e_shoff, uint64_t{header->e_shnum} * sizeof(Elf64_Shdr)));
  for (int i = 0; sections != nullptr && i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= header->e_shnum) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    const char* text = at(names.sh_offset, names.sh_size);
    auto* symbols = reinterpret_cast<const Elf64_Sym*>(at(section.sh_offset, section.sh_size));
    if (text == nullptr || symbols == nullptr || names.sh_size == 0 || text[names.sh_size - 1] != '\0') return 0;
    for (uint64_t k = 0; k < section.sh_size / sizeof(Elf64_Sym); ++k) {
      const Elf64_Sym& symbol = symbols[k];
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.sh_size) continue;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && function == text + symbol.st_name) return symbol.st_value;
    }
  }
  return 0;
}

}  // namespace

bool is_mapped(int pid, const std::string& name) {
  for (const Mapping& mapping : mappings(pid)) {
    if (is_named(mapping.path, name)) return true;
  }
  return false;
}

uint64_t remote_function(int pid, const std::string& function) {
  for (const char* name : {"libc.so", "libdl.so"}) {
    for (const Mapping& mapping : mappings(pid)) {
      if (mapping.offset != 0 || !is_named(mapping.path, name)) continue;
      // As the process sees the path.
      uint64_t value = symbol_value("/proc/" + std::to_string(pid) + "/root" + mapping.path, function);
      if (value != 0) return mapping.low + value;
    }
  }
  return 0;
}

uint64_t auxiliary_value(int pid, uint64_t type) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/auxv", std::ios::binary);
  Elf64_auxv_t entry;
  while (file.read(reinterpret_cast<char*>(&entry), sizeof(entry)) && entry.a_type != AT_NULL) {
    if (entry.a_type == type) return entry.a_un.a_val;
  }
  return 0;
}

}  // namespace classaccess
