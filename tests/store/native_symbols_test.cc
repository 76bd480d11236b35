#include "agent/store/native_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "agent/store/disassemble.h"
#include "query.h"

namespace classaccess {

__attribute__((noinline)) int function_that_is_looked_up(int x) { return x * 3 + static_cast<int>(getpid()); }

namespace {

TEST(NativeSymbols, OwnFunctionIsDemangled) {
  NativeSymbols symbols;
  uint64_t start = reinterpret_cast<uint64_t>(&function_that_is_looked_up);
  NativeSymbol found = symbols.find(start + 1);
  EXPECT_EQ(found.symbol, "classaccess::function_that_is_looked_up(int)");
  EXPECT_EQ(found.library, "native_symbols_test");
}

TEST(NativeSymbols, LibraryFunction) {
  NativeSymbols symbols;
  NativeSymbol found = symbols.find(reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "getenv")));
  EXPECT_EQ(found.library, "libc.so.6");
  EXPECT_EQ(found.symbol, "getenv");
}

TEST(NativeSymbols, LibraryLoadedAfterTheFirstLook) {
  NativeSymbols symbols;
  symbols.find(reinterpret_cast<uint64_t>(&function_that_is_looked_up));
  void* handle = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) GTEST_SKIP() << "no libresolv.so.2 to load";
  void* function = dlsym(handle, "ns_get16");
  ASSERT_NE(function, nullptr);
  usleep(60000);  // maps are read again at most every 50 ms
  NativeSymbol found = symbols.find(reinterpret_cast<uint64_t>(function));
  EXPECT_EQ(found.library, "libresolv.so.2");
  EXPECT_EQ(found.symbol, "ns_get16");
}

TEST(NativeSymbols, NowhereAndAnonymousMemoryHaveNoName) {
  NativeSymbols symbols;
  EXPECT_EQ(symbols.find(0x10).library, "");
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  NativeSymbol found = symbols.find(reinterpret_cast<uint64_t>(memory));
  EXPECT_EQ(found.library, "");
  EXPECT_EQ(found.symbol, "");
  munmap(memory, 4096);
}

// The smallest library with one named function, damaged in many ways.
struct FakeLibrary {
  static constexpr uint64_t kFunction = 0x180;
  Elf64_Ehdr header = {};
  Elf64_Phdr segment = {};
  Elf64_Shdr sections[3] = {};  // none, symbols, names
  Elf64_Sym symbols[2] = {};    // none, the function
  char names[16] = "\0fabricated";
  char code[3584] = {};

  FakeLibrary() {
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = offsetof(FakeLibrary, segment);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    header.e_shoff = offsetof(FakeLibrary, sections);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    segment.p_type = PT_LOAD;
    segment.p_filesz = sizeof(FakeLibrary);
    sections[1].sh_type = SHT_SYMTAB;
    sections[1].sh_offset = offsetof(FakeLibrary, symbols);
    sections[1].sh_size = sizeof(symbols);
    sections[1].sh_entsize = sizeof(Elf64_Sym);
    sections[1].sh_link = 2;
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = offsetof(FakeLibrary, names);
    sections[2].sh_size = sizeof(names);
    symbols[1].st_name = 1;
    symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols[1].st_shndx = 1;
    symbols[1].st_value = kFunction;
    symbols[1].st_size = 0x400;
  }
};

class DamagedLibrary : public ::testing::Test {
 protected:
  std::string path = make_directory() + "/fake.so";

  // What is found at the function's address; "(no map)" if it cannot be mapped.
  std::string lookup(const void* bytes, size_t count, off_t grown = 0) {
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    EXPECT_EQ(write(fd, bytes, count), static_cast<ssize_t>(count));
    if (grown != 0 && ftruncate(fd, grown) != 0) grown = 0;
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) return "(no map)";
    NativeSymbols symbols;
    NativeSymbol found = symbols.find(reinterpret_cast<uint64_t>(memory) + FakeLibrary::kFunction + 4);
    munmap(memory, 4096);
    EXPECT_EQ(found.library, "fake.so");
    return found.symbol;
  }
  std::string lookup(const FakeLibrary& library, off_t grown = 0) { return lookup(&library, sizeof(library), grown); }
  void SetUp() override {
    if (lookup(FakeLibrary()) == "(no map)") GTEST_SKIP() << "files in " << path << " cannot be mapped executable";
  }
};

TEST_F(DamagedLibrary, AsItShouldBe) { EXPECT_EQ(lookup(FakeLibrary()), "fabricated"); }

TEST_F(DamagedLibrary, ClaimsThatCannotBe) {
  using Damage = std::function<void(FakeLibrary&)>;
  const uint64_t kHuge = uint64_t{1} << 60, kAll = ~uint64_t{0};
  const std::pair<const char*, Damage> cases[] = {
      {"table size", [&](FakeLibrary& l) { l.sections[1].sh_size = kHuge; }},
      {"table size all", [&](FakeLibrary& l) { l.sections[1].sh_size = kAll; }},
      {"table size just too big", [&](FakeLibrary& l) { l.sections[1].sh_size = sizeof(FakeLibrary); }},
      {"table offset", [&](FakeLibrary& l) { l.sections[1].sh_offset = kAll - 8; }},
      {"entry size 0", [&](FakeLibrary& l) { l.sections[1].sh_entsize = 0; }},
      {"entry size 1", [&](FakeLibrary& l) { l.sections[1].sh_entsize = 1; }},
      {"link out of range", [&](FakeLibrary& l) { l.sections[1].sh_link = 3; }},
      {"link to itself", [&](FakeLibrary& l) { l.sections[1].sh_link = 1; }},
      {"names offset", [&](FakeLibrary& l) { l.sections[2].sh_offset = kAll; }},
      {"names size", [&](FakeLibrary& l) { l.sections[2].sh_size = kHuge; }},
      {"names empty", [&](FakeLibrary& l) { l.sections[2].sh_size = 0; }},
      {"name offset", [&](FakeLibrary& l) { l.symbols[1].st_name = ~0u; }},
      {"sections offset", [&](FakeLibrary& l) { l.header.e_shoff = kAll; }},
      {"sections count", [&](FakeLibrary& l) { l.header.e_shnum = 0xffff; }},
      {"section size", [&](FakeLibrary& l) { l.header.e_shentsize = 1; }},
      {"segments offset", [&](FakeLibrary& l) { l.header.e_phoff = kAll; }},
      {"segments count", [&](FakeLibrary& l) { l.header.e_phnum = 0xffff; }},
      {"segment size", [&](FakeLibrary& l) { l.header.e_phentsize = 0; }},
      {"segment elsewhere",
       [&](FakeLibrary& l) {
         l.segment.p_offset = kAll;
         l.segment.p_filesz = 1;
       }},
      {"symbol elsewhere",
       [&](FakeLibrary& l) {
         l.symbols[1].st_value = kAll;
         l.symbols[1].st_size = kAll;
       }},
  };
  for (const auto& [name, damage] : cases) {
    FakeLibrary library;
    damage(library);
    EXPECT_EQ(lookup(library), "") << name;
  }
}

// As big as it says, but nearly all of it a hole.
TEST_F(DamagedLibrary, ASparseTableOfATerabyteIsNotRead) {
  FakeLibrary library;
  library.sections[1].sh_size = uint64_t{1} << 39;
  EXPECT_EQ(lookup(library, off_t{1} << 40), "");
}

TEST_F(DamagedLibrary, CutOffAnywhere) {
  FakeLibrary library;
  for (size_t bytes = 0; bytes < offsetof(FakeLibrary, code); bytes += 8) EXPECT_EQ(lookup(&library, bytes), "");
}

TEST_F(DamagedLibrary, RandomBytes) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 3000; ++round) {
    FakeLibrary library;
    auto* bytes = reinterpret_cast<uint8_t*>(&library);
    for (int i = 0; i < 4; ++i) {
      size_t at = sizeof(library.header.e_ident) + random() % (offsetof(FakeLibrary, code) - EI_NIDENT);
      bytes[at] = random() % 3 == 0 ? 0xff : static_cast<uint8_t>(random());
    }
    std::string symbol = lookup(library);
    EXPECT_LE(symbol.size(), sizeof(library.names)) << "round " << round;
  }
}

TEST(Disassembler, IntelSyntaxOrTheBytes) {
  Disassembler disassembler;
  const uint8_t load[] = {0x8b, 0x46, 0x0c};
  EXPECT_EQ(disassembler.text(0x1000, load, 3), "mov eax, dword ptr [rsi + 0xc]");
  const uint8_t junk[] = {0x0f, 0xff, 0xff};
  EXPECT_EQ(disassembler.text(0x1000, junk, 3), "(bytes) 0f ff ff");
  EXPECT_EQ(disassembler.text(0x1000, load, 0), "");
  // A shorter instruction than the site has: not what is there.
  const uint8_t two[] = {0x90, 0x90};
  EXPECT_EQ(disassembler.text(0x1000, two, 2), "(bytes) 90 90");
}

}  // namespace
}  // namespace classaccess
