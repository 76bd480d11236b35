// Which function a name means, and which are not hooked: separate debug files, IFUNCs, shared first bytes, shadow
// stacks.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>

#include <filesystem>

#include "agent/calls/native/elf_file.h"
#include "agent/calls/native/function_search.h"
#include "agent/calls/native/native_calls.h"
#include "agent/calls/native/shadow_stack.h"
#include "tests/calls/called_library.h"
#include "tests/calls/hooks.h"

namespace classaccess {
namespace {

TEST(NativeCalls, WhatAnIfuncHasChosenIsTimed) {
  Hooks hooks({"libcalled_library.so!called_ifunc"});
  ASSERT_EQ(hooks.error(), "");
  for (volatile int i = 0; i < 10;) {
    EXPECT_EQ(called_ifunc(i), i + 9);
    i = i + 1;
  }
  const FunctionTotals totals = hooks.of("called_ifunc");
  EXPECT_EQ(totals.refused, "");
  EXPECT_EQ(totals.count, 10u);
  EXPECT_EQ(totals.untimed, 0u);
}

// The C library's string functions share their tails, and are local functions of a stripped library.
TEST(NativeCalls, IfuncsOfTheCLibraryAreTimedOrRefused) {
  Hooks hooks({"libc.so.6!mem*", "libc.so.6!str*"});
  ASSERT_EQ(hooks.error(), "");
  char text[4096], copy[4096];
  memset(text, 'a', sizeof(text) - 1);
  text[sizeof(text) - 1] = 0;
  void* (*volatile move)(void*, const void*, size_t) = memmove;
  size_t (*volatile length)(const char*) = strlen;
  const char* (*volatile find)(const char*, int) = strchr;
  for (int i = 0; i < 100; ++i) {
    const auto n = static_cast<size_t>(i) * 40;
    move(copy, text, sizeof(text));
    copy[n] = 0;
    EXPECT_EQ(length(copy), n);
    EXPECT_EQ(find(copy, 'b'), nullptr);
  }
  int timed = 0;
  for (const auto& [name, totals] : hooks.all()) {
    if (totals.refused.empty()) ++timed;
    EXPECT_EQ(totals.refused.find("IFUNC"), std::string::npos) << name << ": " << totals.refused;
  }
  EXPECT_GT(timed, 20);
  const FunctionTotals strlen_totals = hooks.of("strlen"), strchr_totals = hooks.of("strchr");
  EXPECT_GE(strlen_totals.count, 100u) << strlen_totals.refused;
  EXPECT_GE(strchr_totals.count, 100u) << strchr_totals.refused;
}

// One of them is timed, the others say which.
TEST(NativeCalls, ASecondNameOfAFunctionIsSaid) {
  Hooks hooks({"libcalled_library.so!called_alias", "libcalled_library.so!called_shared_name"});
  ASSERT_EQ(hooks.error(), "");
  EXPECT_EQ(called_shared_name(1), 3);
  EXPECT_EQ(called_alias(2), 4);
  EXPECT_EQ(hooks.of("called_alias").count, 2u);
  EXPECT_EQ(hooks.of("called_shared_name").refused, "another name of called_alias");
}

TEST(NativeCalls, OtherCodeBranchesIntoTheFirstBytes) {
  Hooks hooks({"libcalled_library.so!*"});
  ASSERT_EQ(hooks.error(), "");
  EXPECT_EQ(called_shared_tail(4), 7);
  EXPECT_EQ(called_other_entry(4), 11);
  EXPECT_EQ(hooks.of("called_shared_tail").refused, "other code branches into its first bytes");
  EXPECT_EQ(hooks.of("called_other_entry").count, 1u);
}

TEST(NativeCalls, LongDoublesAreReturned) {
  Hooks hooks({"libcalled_library.so!*"});
  EXPECT_EQ(called_long_double(1.25L), 2.5L);
  EXPECT_EQ(called_long_double(0x1.00000000000001p60L), 0x1.00000000000001p61L);
  EXPECT_EQ(hooks.of("called_long_double").count, 2u);
}

class DebugFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("debug-files-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "root");
    library_ = folder_ / "libcalled_stripped.so";
    std::filesystem::copy_file(CALLED_LATER, library_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void binutils(const std::string& arguments) {
    ASSERT_EQ(system((std::string(CLASSACCESS_OBJCOPY) + " " + arguments).c_str()), 0);
  }
  std::string found() const { return separate_debug_file(ElfFile(library_), library_, folder_ / "root"); }
  bool is_known(const std::string& name) const {
    for (const LoadedLibrary& library : loaded_libraries()) {
      if (library.path != library_) continue;
      for (const FoundFunction& function : functions_of(library)) {
        if (function.name == name) return true;
      }
    }
    return false;
  }
  std::filesystem::path folder_, library_;
};

TEST_F(DebugFiles, LocalFunctionsOfAStrippedLibraryAreTimed) {
  const std::string debug = folder_ / "stripped.debug";
  binutils("--only-keep-debug " + library_.string() + " " + debug);
  binutils("--strip-all --add-gnu-debuglink=" + debug + " " + library_.string());
  const std::string away = folder_ / "away";
  std::filesystem::rename(debug, away);
  void* handle = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_TRUE(is_known("called_static_chain"));
  EXPECT_FALSE(is_known("called_chain_inner"));
  // Each place of its own.
  for (const std::filesystem::path& place : {folder_, folder_ / ".debug", folder_ / ("root" + folder_.string())}) {
    std::filesystem::create_directories(place);
    std::filesystem::copy_file(away, place / "stripped.debug");
    EXPECT_EQ(found(), place / "stripped.debug");
    std::filesystem::remove(place / "stripped.debug");
  }
  std::filesystem::copy_file(away, debug);
  EXPECT_TRUE(is_known("called_chain_inner"));
  {
    Hooks hooks({"libcalled_stripped.so!called_chain_inner"});
    auto call = reinterpret_cast<int (*)(int)>(dlsym(handle, "called_static_chain"));
    EXPECT_EQ(call(11), 111);
    EXPECT_EQ(hooks.of("called_chain_inner").count, 1u);
  }
  dlclose(handle);
}

// Its addresses would be wrong.
TEST_F(DebugFiles, OneOfAnotherBuildIsNotTaken) {
  const std::string debug = folder_ / "stripped.debug";
  binutils("--only-keep-debug " + library_.string() + " " + debug);
  binutils("--strip-all --add-gnu-debuglink=" + debug + " " + library_.string());
  EXPECT_EQ(found(), debug);
  binutils("--only-keep-debug " + std::string(CLASSACCESS_TEST_PROGRAM) + " " + debug);
  EXPECT_EQ(found(), "");
}

TEST_F(DebugFiles, TheBuildIdTells) {
  const std::string id = ElfFile(library_).build_id();
  if (id.empty()) GTEST_SKIP() << "the linker writes no build id";
  const auto place = folder_ / "root" / ".build-id" / id.substr(0, 2);
  std::filesystem::create_directories(place);
  const std::string debug = place / (id.substr(2) + ".debug");
  binutils("--only-keep-debug " + library_.string() + " " + debug);
  binutils("--strip-all " + library_.string());
  EXPECT_EQ(found(), debug);
  binutils("--only-keep-debug " + std::string(CLASSACCESS_TEST_PROGRAM) + " " + debug);
  EXPECT_EQ(found(), "");
}

TEST(ShadowStack, IsToldByTheKernelsAnswers) {
  EXPECT_FALSE(has_shadow_stack({-EINVAL, 0, ""}));
  EXPECT_FALSE(has_shadow_stack({0, 0, ""}));
  EXPECT_TRUE(has_shadow_stack({0, 1, ""}));
  EXPECT_TRUE(has_shadow_stack({0, 3, ""}));
  EXPECT_FALSE(has_shadow_stack({0, 2, ""}));
  // A filter refuses the call.
  EXPECT_TRUE(has_shadow_stack({-EPERM, 0, "Name:\tjava\nx86_Thread_features:\tshstk wrss \nThreads:\t2\n"}));
  EXPECT_FALSE(has_shadow_stack({-EPERM, 0, "x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk wrss \n"}));
  EXPECT_FALSE(has_shadow_stack({-EPERM, 0, "Name:\tjava\n"}));
  EXPECT_FALSE(has_shadow_stack(g_ask_shadow_stack()));
}

TEST(ShadowStack, NothingIsHookedAndTheMessageSaysWhy) {
  auto* before = g_ask_shadow_stack;
  g_ask_shadow_stack = [] { return ShadowStackAnswer{0, 1, ""}; };
  {
    Hooks hooks({"libcalled_library.so!*"});
    EXPECT_NE(hooks.error().find("user shadow stack (CET)"), std::string::npos) << hooks.error();
    EXPECT_EQ(called_endbr(5), 6);
    EXPECT_EQ(hooks.of("called_endbr").count, 0u);
    EXPECT_FALSE(hooks.of("called_endbr").found);
  }
  g_ask_shadow_stack = before;
  Hooks hooks({"libcalled_library.so!*"});
  EXPECT_EQ(hooks.error(), "");
  EXPECT_EQ(called_endbr(5), 6);
  EXPECT_EQ(hooks.of("called_endbr").count, 1u);
}

}  // namespace
}  // namespace classaccess
