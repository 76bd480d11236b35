#include "agent/base/terminal_line.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>

#include "agent/base/raw_syscall.h"

namespace classaccess {
namespace {

std::atomic<TerminalLine*> g_line{nullptr};
std::atomic<uint32_t> g_users{0};

void sleep_a_millisecond() {
  const long time[2] = {0, 1000000};
  raw_syscall(SYS_nanosleep, reinterpret_cast<long>(time), 0);
}

// The line, if somebody draws it where fd leads to; it stays mapped while this lives.
class LineInUse {
 public:
  explicit LineInUse(int fd) {
    if (g_line.load(std::memory_order_relaxed) == nullptr || fd < 0 || fd > 2) return;
    g_users.fetch_add(1);
    counted_ = true;
    TerminalLine* line = g_line.load();
    struct stat status;
    if (line == nullptr || line->drawer.load(std::memory_order_acquire) == 0) return;
    if (raw_syscall(SYS_fstat, fd, reinterpret_cast<long>(&status)) != 0) return;
    if (!S_ISCHR(status.st_mode) || status.st_rdev != line->terminal.load(std::memory_order_relaxed)) return;
    line_ = line;
  }
  ~LineInUse() {
    if (counted_) g_users.fetch_sub(1);
  }
  LineInUse(const LineInUse&) = delete;
  LineInUse& operator=(const LineInUse&) = delete;
  TerminalLine* get() const { return line_; }

 private:
  TerminalLine* line_ = nullptr;
  bool counted_ = false;
};

}  // namespace

bool set_terminal_line(TerminalLine* line) {
  g_line.store(line);
  if (line != nullptr) return true;
  for (int tries = 0; g_users.load() != 0; ++tries) {
    if (tries == 1000) return false;
    sleep_a_millisecond();
  }
  return true;
}

void forget_terminal_line() {
  g_line.store(nullptr);
  g_users.store(0);
}

void before_output(int fd) {
  LineInUse use(fd);
  TerminalLine* line = use.get();
  if (line == nullptr) return;
  // The drawer is stopped by the terminal (^S), or dead, if this takes long.
  for (int tries = 0; line->shown.load(std::memory_order_acquire) == TerminalLine::kDrawing && tries < 50; ++tries) {
    sleep_a_millisecond();
  }
  uint32_t drawn = TerminalLine::kDrawn;
  if (!line->shown.compare_exchange_strong(drawn, TerminalLine::kNothing, std::memory_order_acq_rel)) return;
  raw_syscall(SYS_write, fd, reinterpret_cast<long>("\r\033[K"), 4);
}

void after_output(int fd, const void* bytes, size_t count) {
  if (count == 0) return;
  LineInUse use(fd);
  TerminalLine* line = use.get();
  if (line == nullptr) return;
  bool inside = static_cast<const char*>(bytes)[count - 1] != '\n';
  line->cursor_inside.store(inside ? 1 : 0, std::memory_order_relaxed);
  // Drawn in the moment between: our next draw must not take the program's text away.
  line->shown.store(TerminalLine::kNothing, std::memory_order_release);
}

}  // namespace classaccess
