# libFuzzer targets of tests/fuzz; needs clang.
set(CMAKE_CXX_COMPILER clang++ CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CLASSACCESS_FUZZ ON CACHE BOOL "")
