#include "agent/protect/got_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace classaccess {
namespace {

struct DynamicSection {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * tables[2] = {};
  size_t sizes[2] = {};
};

DynamicSection read_dynamic(const link_map* map) {
  DynamicSection d;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB: d.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr); break;
      case DT_STRTAB: d.strings = reinterpret_cast<const char*>(entry->d_un.d_ptr); break;
      case DT_JMPREL: d.tables[0] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr); break;
      case DT_PLTRELSZ: d.sizes[0] = entry->d_un.d_val; break;
      case DT_RELA: d.tables[1] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr); break;
      case DT_RELASZ: d.sizes[1] = entry->d_un.d_val; break;
      default: break;
    }
  }
  return d;
}

// Whether the loader has made the slot's page read-only (whole pages of PT_GNU_RELRO). A
// lazily bound GOT stays writable: its other slots are still to be filled.
bool in_relro(const link_map* map, const void* image, const void* slot) {
  auto* header = static_cast<const ElfW(Ehdr)*>(image);
  auto* segments = reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(image) + header->e_phoff);
  uint64_t page = reinterpret_cast<uint64_t>(slot) & ~4095ull;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_GNU_RELRO) continue;
    uint64_t low = map->l_addr + segments[i].p_vaddr, high = low + segments[i].p_memsz;
    if (page >= (low & ~4095ull) && page < (high & ~4095ull)) return true;
  }
  return false;
}

bool store_slot(void** slot, void* value, bool read_only) {
  void* page = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(slot) & ~4095ull);
  if (read_only && mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (read_only) mprotect(page, 4096, PROT_READ);
  return true;
}

// A slot not bound yet points back into its own library.
bool is_bound(const ElfW(Sym) & symbol, void* target, const void* image) {
  Dl_info info;
  link_map* map = nullptr;
  return symbol.st_shndx != SHN_UNDEF || dladdr1(target, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
         info.dli_fbase != image;
}

}  // namespace

int patch_got(uint64_t address, const char* name, void* replacement, void** original) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return 0;
  DynamicSection d = read_dynamic(map);
  if (d.symbols == nullptr || d.strings == nullptr) return 0;
  int patched = 0;
  for (int t = 0; t < 2; ++t) {
    size_t count = d.tables[t] != nullptr ? d.sizes[t] / sizeof(ElfW(Rela)) : 0;
    for (size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& rela = d.tables[t][i];
      auto type = ELF64_R_TYPE(rela.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const ElfW(Sym)& symbol = d.symbols[ELF64_R_SYM(rela.r_info)];
      if (strcmp(d.strings + symbol.st_name, name) != 0) continue;
      auto** slot = reinterpret_cast<void**>(map->l_addr + rela.r_offset);
      if (*slot == replacement) continue;
      if (patched == 0 && original != nullptr && is_bound(symbol, *slot, info.dli_fbase)) *original = *slot;
      if (store_slot(slot, replacement, in_relro(map, info.dli_fbase, slot))) ++patched;
    }
  }
  return patched;
}

}  // namespace classaccess
