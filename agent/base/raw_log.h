// Messages by write(2) alone: "classaccess: text\n" on standard error or the file
// of log=LEVEL:FILE; the level only decides whether it is said. Formatting on the caller's stack, no stdio, no lock.
// Context: any thread and signal handler.
#pragma once

#include <cstdint>

namespace classaccess {

enum class LogLevel : int { kError = 0, kWarn, kInfo, kDebug };

// Start only. fd stays open for the process's life.
void set_log(LogLevel level, int fd);
bool log_enabled(LogLevel level);

// Formats %s %d %u %lu %ld %x %lx %p %c %%; at most 1000 bytes, longer text is cut.
void raw_log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace classaccess
