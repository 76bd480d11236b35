#include "agent/base/raw_log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/terminal_line.h"

namespace classaccess {
namespace {

LogLevel g_level = LogLevel::kWarn;
int g_fd = 2;

// Fills a fixed buffer; what does not fit is cut.
class Line {
 public:
  void put(char c) {
    if (used_ < sizeof(text_) - 1) text_[used_++] = c;
  }
  void put(const char* s) {
    for (s = s != nullptr ? s : "(null)"; *s != '\0'; ++s) put(*s);
  }
  void put_number(uint64_t value, unsigned radix) {
    char digits[24];
    int n = 0;
    do {
      digits[n++] = "0123456789abcdef"[value % radix];
      value /= radix;
    } while (value != 0);
    while (n > 0) put(digits[--n]);
  }
  void put_signed(int64_t value) {
    if (value < 0) put('-');
    put_number(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value), 10);
  }
  void write_to(int fd) {
    text_[used_++] = '\n';
    const char* from = text_;
    size_t left = used_;
    while (left > 0) {
      ssize_t n = write(fd, from, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      from += n;
      left -= static_cast<size_t>(n);
    }
  }

 private:
  char text_[1024];
  size_t used_ = 0;
};

}  // namespace

void set_log(LogLevel level, int fd) {
  g_level = level;
  g_fd = fd;
}

bool log_enabled(LogLevel level) { return level <= g_level; }

void raw_log(LogLevel level, const char* format, ...) {
  if (!log_enabled(level)) return;
  int saved_errno = errno;
  Line line;
  line.put("classaccess: ");
  va_list args;
  va_start(args, format);
  for (const char* f = format; *f != '\0'; ++f) {
    if (*f != '%') {
      line.put(*f);
      continue;
    }
    bool is_long = false;
    for (++f; *f == 'l'; ++f) is_long = true;
    switch (*f) {
      case 's': line.put(va_arg(args, const char*)); break;
      case 'c': line.put(static_cast<char>(va_arg(args, int))); break;
      case 'd': line.put_signed(is_long ? va_arg(args, long) : va_arg(args, int)); break;
      case 'u': line.put_number(is_long ? va_arg(args, unsigned long) : va_arg(args, unsigned), 10); break;
      case 'x': line.put_number(is_long ? va_arg(args, unsigned long) : va_arg(args, unsigned), 16); break;
      case 'p':
        line.put("0x");
        line.put_number(reinterpret_cast<uint64_t>(va_arg(args, void*)), 16);
        break;
      case '\0': --f; break;
      default: line.put(*f); break;
    }
  }
  va_end(args);
  before_output(g_fd);
  line.write_to(g_fd);
  errno = saved_errno;
}

}  // namespace classaccess
