# What is shipped.
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
