#include "agent/store/native_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/store/disassemble.h"

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
