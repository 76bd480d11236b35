# Ring and tables under ThreadSanitizer (spsc_ring_test, append_table_test).
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_FLAGS "-O1 -fsanitize=thread" CACHE STRING "")
