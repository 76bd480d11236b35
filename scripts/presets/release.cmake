# What is shipped (scripts/package): compiled as the tests' build, without them.
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(BUILD_TESTING OFF CACHE BOOL "")
