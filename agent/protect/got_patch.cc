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

bool store_slot(void** slot, void* value) {
  uint64_t page = reinterpret_cast<uint64_t>(slot) & ~4095ull;
  // RELRO has made it read-only; it stays read-only afterwards.
  if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ);
  return true;
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
      const char* symbol = d.strings + d.symbols[ELF64_R_SYM(rela.r_info)].st_name;
      if (strcmp(symbol, name) != 0) continue;
      auto** slot = reinterpret_cast<void**>(map->l_addr + rela.r_offset);
      if (*slot == replacement) continue;
      if (patched == 0 && original != nullptr) *original = *slot;
      if (store_slot(slot, replacement)) ++patched;
    }
  }
  return patched;
}

}  // namespace classaccess
