// A failed test leaves its directory.
#include <gtest/gtest.h>

#include "query.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int result = RUN_ALL_TESTS();
  if (result == 0) classaccess::remove_directories();
  return result;
}
