# Unit tests under AddressSanitizer and UndefinedBehaviorSanitizer. Never a JVM: the sanitizer
# and the agent both want SIGSEGV and the address space.
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_FLAGS "-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined" CACHE STRING "")
