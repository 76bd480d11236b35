#include "agent/protect/got_patch.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fault/child.h"

namespace classaccess {
namespace {

int replaced_getpid() { return -17; }
long replaced_atol(const char*) { return 99; }

struct Library {
  explicit Library(const char* path) : handle(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {
    EXPECT_NE(nullptr, handle) << dlerror();
  }
  template <typename F>
  F* function(const char* name) {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
  void* handle;
};

class GotPatchTest : public testing::TestWithParam<const char*> {};

// In a child: the library stays patched otherwise.
TEST_P(GotPatchTest, CallsGoToTheReplacementAndBack) {
  test::expect_fine_in_child([] {
    Library library(GetParam());
    auto* pid = library.function<int()>("got_library_pid");
    ASSERT_NE(nullptr, pid);
    auto address = reinterpret_cast<uint64_t>(pid);
    void* original = reinterpret_cast<void*>(&getpid);
    EXPECT_EQ(1, patch_got(address, "getpid", reinterpret_cast<void*>(replaced_getpid), &original));
    EXPECT_EQ(-17, pid());
    EXPECT_EQ(getpid(), getpid());
    EXPECT_GT(getpid(), 0) << "another library's calls are its own";
    EXPECT_EQ(getpid(), reinterpret_cast<int (*)()>(original)());
    EXPECT_EQ(-17, pid()) << "the original, if lazy, must not fill the slot again";
    void* untouched = &address;
    EXPECT_EQ(0, patch_got(address, "getpid", reinterpret_cast<void*>(replaced_getpid), &untouched)) << "again";
    EXPECT_EQ(&address, untouched);
    EXPECT_EQ(1, patch_got(address, "getpid", original, nullptr));
    EXPECT_EQ(getpid(), pid());
  });
}

TEST_P(GotPatchTest, NeighboursStillWork) {
  test::expect_fine_in_child([] {
    Library library(GetParam());
    auto* pid = library.function<int()>("got_library_pid");
    EXPECT_EQ(1,
              patch_got(reinterpret_cast<uint64_t>(pid), "getpid", reinterpret_cast<void*>(replaced_getpid), nullptr));
    // First calls: a lazily bound slot on the same page is written now.
    EXPECT_EQ(getppid(), library.function<int()>("got_library_parent")());
    EXPECT_EQ(getuid(), library.function<unsigned()>("got_library_user")());
    EXPECT_EQ(8, library.function<int(int)>("got_library_write")(8));
  });
}

TEST_P(GotPatchTest, PointersToAFunctionAreReplacedToo) {
  test::expect_fine_in_child([] {
    Library library(GetParam());
    auto* pointer = library.function<const void*()>("got_library_pointer");
    void* original = nullptr;
    EXPECT_EQ(
        1, patch_got(reinterpret_cast<uint64_t>(pointer), "atol", reinterpret_cast<void*>(replaced_atol), &original));
    EXPECT_EQ(reinterpret_cast<const void*>(replaced_atol), pointer());
    EXPECT_EQ(reinterpret_cast<void*>(&atol), original);
  });
}

TEST_P(GotPatchTest, NothingIsFoundForOtherNamesAndAddresses) {
  Library library(GetParam());
  auto address = reinterpret_cast<uint64_t>(library.function<int()>("got_library_pid"));
  EXPECT_EQ(0, patch_got(address, "getpi", reinterpret_cast<void*>(replaced_getpid), nullptr));
  EXPECT_EQ(0, patch_got(address, "getpid_", reinterpret_cast<void*>(replaced_getpid), nullptr));
  EXPECT_EQ(0, patch_got(8, "getpid", reinterpret_cast<void*>(replaced_getpid), nullptr));
}

INSTANTIATE_TEST_SUITE_P(Bindings, GotPatchTest, testing::Values(GOT_LIBRARY_NOW, GOT_LIBRARY_LAZY),
                         [](const testing::TestParamInfo<const char*>& p) { return p.index == 0 ? "Now" : "Lazy"; });

}  // namespace
}  // namespace classaccess
