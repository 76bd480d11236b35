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

DynamicSection read_dynamic(const ElfW(Dyn) * section) {
  DynamicSection d;
  for (const ElfW(Dyn)* entry = section; entry->d_tag != DT_NULL; ++entry) {
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
bool in_relro(const LoadedObject& object, const void* slot) {
  uint64_t page = reinterpret_cast<uint64_t>(slot) & ~4095ull;
  for (int i = 0; i < object.segment_count; ++i) {
    const ElfW(Phdr)& segment = object.segments[i];
    if (segment.p_type != PT_GNU_RELRO) continue;
    uint64_t low = object.base + segment.p_vaddr, high = low + segment.p_memsz;
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

// Calls f(name, undefined, slot) for each JUMP_SLOT and GLOB_DAT relocation.
template <typename F>
void for_each_slot(const DynamicSection& d, uint64_t base, F&& f) {
  if (d.symbols == nullptr || d.strings == nullptr) return;
  for (int t = 0; t < 2; ++t) {
    size_t count = d.tables[t] != nullptr ? d.sizes[t] / sizeof(ElfW(Rela)) : 0;
    for (size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& rela = d.tables[t][i];
      auto type = ELF64_R_TYPE(rela.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const ElfW(Sym)& symbol = d.symbols[ELF64_R_SYM(rela.r_info)];
      f(d.strings + symbol.st_name, symbol, reinterpret_cast<void**>(base + rela.r_offset));
    }
  }
}

// The value of a slot that is not bound yet points back into its own library's PLT.
bool points_into(const LoadedObject& object, const void* target) {
  auto address = reinterpret_cast<uint64_t>(target);
  for (int i = 0; i < object.segment_count; ++i) {
    const ElfW(Phdr)& segment = object.segments[i];
    if (segment.p_type == PT_LOAD && address - (object.base + segment.p_vaddr) < segment.p_memsz) return true;
  }
  return false;
}

}  // namespace

int patch_got(uint64_t address, const char* name, void* replacement, void** original) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return 0;
  auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  auto* segments = reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(info.dli_fbase) + header->e_phoff);
  LoadedObject object = {map->l_addr, segments, header->e_phnum};
  int patched = 0;
  for_each_slot(read_dynamic(map->l_ld), map->l_addr,
                [&](const char* slot_name, const ElfW(Sym) & symbol, void** slot) {
                  if (strcmp(slot_name, name) != 0 || *slot == replacement) return;
                  if (patched == 0 && original != nullptr && is_bound(symbol, *slot, info.dli_fbase)) *original = *slot;
                  if (store_slot(slot, replacement, in_relro(object, slot))) ++patched;
                });
  return patched;
}

bool patch_object(const LoadedObject& object, const GotChange* changes, int count,
                  bool (*is_read_only)(const void* address)) {
  const ElfW(Dyn)* section = nullptr;
  for (int i = 0; i < object.segment_count; ++i) {
    if (object.segments[i].p_type == PT_DYNAMIC) {
      section = reinterpret_cast<const ElfW(Dyn)*>(object.base + object.segments[i].p_vaddr);
    }
  }
  if (section == nullptr) return true;
  DynamicSection d = read_dynamic(section);
  // Not relocated: the kernel's own object.
  if (reinterpret_cast<uint64_t>(d.symbols) < object.base) return true;
  bool complete = true;
  for_each_slot(d, object.base, [&](const char* name, const ElfW(Sym) & symbol, void** slot) {
    if (symbol.st_shndx != SHN_UNDEF) return;
    for (int i = 0; i < count; ++i) {
      const GotChange& change = changes[i];
      void* value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
      if (value != change.from && !(change.unbound && points_into(object, value))) continue;
      if (strcmp(name, change.name) != 0) continue;
      bool relro = in_relro(object, slot);
      // The loader still writes to it, and protects it when it is done.
      bool unfinished = relro && is_read_only != nullptr && !is_read_only(slot);
      if (unfinished || !store_slot(slot, change.to, relro)) complete = false;
      return;
    }
  });
  return complete;
}

}  // namespace classaccess
