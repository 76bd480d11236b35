#include "agent/calls/native/function_search.h"

#include <fnmatch.h>
#include <link.h>
#include <string.h>

#include <algorithm>
#include <filesystem>

#include "agent/calls/native/elf_file.h"

namespace classaccess {
namespace {

struct Symbol {
  uint64_t value, size;
  std::string name;
  bool ifunc;
};

bool is_function(const Elf64_Sym& symbol) {
  const int type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
}

void read_symbols(const ElfFile& file, std::vector<Symbol>* out) {
  const std::vector<Elf64_Shdr>& sections = file.sections();
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections.size()) continue;
    std::vector<Elf64_Sym> symbols;
    std::vector<char> names;
    const Elf64_Shdr& strings = sections[section.sh_link];
    if (!file.read(section.sh_offset, section.sh_size / sizeof(Elf64_Sym), &symbols) ||
        !file.read(strings.sh_offset, strings.sh_size, &names) || names.empty() || names.back() != 0) {
      continue;
    }
    for (const Elf64_Sym& symbol : symbols) {
      if (!is_function(symbol) || symbol.st_name >= names.size()) continue;
      std::string name = &names[symbol.st_name];
      name = name.substr(0, name.find('@'));
      if (!name.empty()) {
        out->push_back({symbol.st_value, symbol.st_size, name, ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC});
      }
    }
  }
}

int add_library(dl_phdr_info* info, size_t, void* context) {
  auto* out = static_cast<std::vector<LoadedLibrary>*>(context);
  LoadedLibrary library;
  library.base = info->dlpi_addr;
  library.path = info->dlpi_name;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    uint64_t low = library.base + segment.p_vaddr, high = low + segment.p_memsz;
    if (library.high == 0) library.low = low;
    library.low = std::min(library.low, low);
    library.high = std::max(library.high, high);
  }
  const auto own = reinterpret_cast<uint64_t>(&loaded_libraries);
  if (library.high == 0 || (own >= library.low && own < library.high)) return 0;
  if (library.path.empty()) {
    std::error_code ec;
    library.path = std::filesystem::read_symlink("/proc/self/exe", ec).string();
  }
  if (library.path.empty() || library.path[0] != '/') return 0;  // the kernel's
  library.name = library.path.substr(library.path.rfind('/') + 1);
  out->push_back(library);
  return 0;
}

}  // namespace

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> out;
  dl_iterate_phdr(add_library, &out);
  return out;
}

uint64_t library_changes() {
  uint64_t changes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_adds + (info->dlpi_subs << 32);
        return 1;
      },
      &changes);
  return changes;
}

std::vector<FoundFunction> functions_of(const LoadedLibrary& library) {
  std::vector<Symbol> symbols;
  const ElfFile file(library.path);
  if (!file.is_good()) return {};
  read_symbols(file, &symbols);
  const std::string debug = separate_debug_file(file, library.path);
  if (!debug.empty()) read_symbols(ElfFile(debug), &symbols);
  std::erase_if(symbols, [&](const Symbol& s) {
    return library.base + s.value < library.low || library.base + s.value >= library.high;
  });
  std::sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
    return a.value != b.value ? a.value < b.value : a.name != b.name ? a.name < b.name : a.size > b.size;
  });
  symbols.erase(std::unique(symbols.begin(), symbols.end(),
                            [](const Symbol& a, const Symbol& b) { return a.value == b.value && a.name == b.name; }),
                symbols.end());
  // The end of the section that holds the code: what lies behind is none.
  auto section_end = [&](uint64_t value) {
    for (const Elf64_Shdr& section : file.sections()) {
      if ((section.sh_flags & SHF_EXECINSTR) != 0 && value - section.sh_addr < section.sh_size) {
        return section.sh_addr + section.sh_size;
      }
    }
    return value;
  };
  std::vector<FoundFunction> out;
  std::vector<uint64_t> starts;
  for (const Symbol& symbol : symbols) starts.push_back(symbol.value);
  for (const Symbol& symbol : symbols) {
    auto next = std::upper_bound(starts.begin(), starts.end(), symbol.value);
    uint64_t limit = section_end(symbol.value);
    if (next != starts.end()) limit = std::min(limit, *next);
    FoundFunction function;
    function.name = symbol.name;
    function.ifunc = symbol.ifunc;
    function.code.entry = library.base + symbol.value;
    function.code.size = symbol.size;
    function.code.limit = library.base + limit;
    if (function.code.size > section_end(symbol.value) - symbol.value) function.code.size = 0;
    out.push_back(std::move(function));
  }
  // GCC moves what is rarely run to `name.cold`, and jumps back from there.
  std::vector<const FoundFunction*> cold;
  for (const FoundFunction& function : out) {
    if (function.name.find(".cold") != std::string::npos && function.code.size != 0) cold.push_back(&function);
  }
  std::sort(cold.begin(), cold.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (FoundFunction& function : out) {
    std::string prefix = function.name + ".cold";
    auto it = std::lower_bound(cold.begin(), cold.end(), prefix,
                               [](const auto* a, const std::string& b) { return a->name < b; });
    for (; it != cold.end() && (*it)->name.compare(0, prefix.size(), prefix) == 0; ++it) {
      function.code.parts.push_back({(*it)->code.entry, (*it)->code.entry + (*it)->code.size});
    }
  }
  return out;
}

bool matches_glob(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace classaccess
