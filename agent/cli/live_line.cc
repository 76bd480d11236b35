#include "agent/cli/live_line.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace classaccess {
namespace {

constexpr long kPeriodNs = 500000000;
constexpr size_t kRateSamples = 5;  // a rate is that of two seconds
constexpr char kClear[] = "\r\033[K";

double now_seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string one_digit(double value, const char* unit) {
  char text[40];
  snprintf(text, sizeof(text), value < 10 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1000000) return std::to_string((bytes + 999) / 1000) + " kB";
  if (bytes < 1000000000) return one_digit(static_cast<double>(bytes) * 1e-6, "MB");
  return one_digit(static_cast<double>(bytes) * 1e-9, "GB");
}

std::string counted(uint64_t number, const char* one, const char* more) {
  return with_commas(number) + " " + (number == 1 ? one : more);
}

size_t columns() {
  winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

bool in_background() {
  pid_t front = tcgetpgrp(STDERR_FILENO);
  return front > 0 && front != getpgrp();
}

}  // namespace

std::string live_text(const LiveFigures& figures, size_t width) {
  std::vector<std::string> pieces;
  if (figures.accesses != 0 || (figures.page_touches == 0 && figures.calls == 0)) {
    pieces.push_back(counted(figures.accesses, "access", "accesses"));
  }
  if (figures.page_touches != 0) pieces.push_back(counted(figures.page_touches, "page touch", "page touches"));
  if (figures.calls != 0) pieces.push_back(counted(figures.calls, "call", "calls"));
  pieces.insert(pieces.begin() + 1, with_commas(static_cast<uint64_t>(figures.per_second)) + "/s");
  if (figures.accesses != 0) pieces.push_back(counted(figures.probes, "probe", "probes"));
  pieces.push_back("database " + size_text(figures.database_bytes));
  std::string text = "classaccess: " + pieces[0];
  for (size_t i = 1; i < pieces.size() && text.size() + 2 + pieces[i].size() <= width; ++i) text += ", " + pieces[i];
  return text.substr(0, width);
}

LiveLine::LiveLine(ControlBlock* block, int pid) : block_(block), target_(pid), started_(target_.start_time()) {}

bool LiveLine::possible() {
  const char* terminal = getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

bool LiveLine::claim() {
  struct stat status;
  if (fstat(STDERR_FILENO, &status) != 0) return false;
  TerminalLine& line = block_->line;
  int32_t other = line.drawer.load(std::memory_order_acquire);
  if (other != 0 && kill(other, 0) == 0) return false;
  line.terminal.store(status.st_rdev, std::memory_order_relaxed);
  line.shown.store(TerminalLine::kNothing, std::memory_order_relaxed);
  line.cursor_inside.store(0, std::memory_order_relaxed);
  return line.drawer.compare_exchange_strong(other, getpid(), std::memory_order_acq_rel);
}

double LiveLine::rate(uint64_t count, double now) {
  if (!samples_.empty() && count < samples_.back().second) samples_.clear();  // another recording
  samples_.emplace_back(now, count);
  if (samples_.size() > kRateSamples) samples_.erase(samples_.begin());
  double seconds = now - samples_.front().first;
  return seconds < 0.1 ? 0 : static_cast<double>(count - samples_.front().second) / seconds;
}

// False: the terminal is gone.
bool LiveLine::draw() {
  const LiveCounts& live = block_->live;
  LiveFigures figures;
  figures.accesses = live.accesses.load(std::memory_order_relaxed);
  figures.page_touches = live.page_touches.load(std::memory_order_relaxed);
  figures.calls = live.calls.load(std::memory_order_relaxed);
  figures.probes = live.probes.load(std::memory_order_relaxed);
  figures.database_bytes = live.database_bytes.load(std::memory_order_relaxed);
  uint64_t first =
      figures.accesses != 0 ? figures.accesses : (figures.page_touches != 0 ? figures.page_touches : figures.calls);
  figures.per_second = rate(first, now_seconds());
  TerminalLine& line = block_->line;
  if (in_background() || line.cursor_inside.load(std::memory_order_relaxed) != 0) return true;
  uint32_t before = line.shown.exchange(TerminalLine::kDrawing, std::memory_order_acq_rel);
  std::string text = (before == TerminalLine::kDrawn ? kClear : "") + live_text(figures, columns() - 1);
  ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  uint32_t drawing = TerminalLine::kDrawing;
  line.shown.compare_exchange_strong(drawing, TerminalLine::kDrawn, std::memory_order_acq_rel);
  return written >= 0 || errno == EINTR || errno == EAGAIN;
}

void LiveLine::take_away() {
  uint32_t drawn = TerminalLine::kDrawn;
  if (!block_->line.shown.compare_exchange_strong(drawn, TerminalLine::kNothing, std::memory_order_acq_rel)) return;
  if (!in_background()) (void)!write(STDERR_FILENO, kClear, strlen(kClear));
}

LiveLine::End LiveLine::leave(End end) {
  if (end != End::kGone) take_away();
  block_->line.drawer.store(0, std::memory_order_release);
  return end;
}

LiveLine::End LiveLine::watch(bool one_recording, const volatile sig_atomic_t* interrupted) {
  if (!possible() || !claim()) return End::kNotHere;
  bool recorded = false;
  for (;;) {
    uint32_t state = block_->live.state.load(std::memory_order_acquire);
    if (state == LiveCounts::kEnding) return leave(End::kEnded);
    if (interrupted != nullptr && *interrupted != 0) return leave(End::kInterrupted);
    if (state != LiveCounts::kRecording) {
      take_away();
      if (recorded && one_recording) return leave(End::kEnded);
    }
    timespec period = {0, kPeriodNs};
    syscall(SYS_futex, &block_->live.state, FUTEX_WAIT, state, &period, nullptr, 0);
    if (target_.start_time() != started_ || target_.status_line("State")[0] == 'Z') return leave(End::kGone);
    if (block_->live.state.load(std::memory_order_acquire) != LiveCounts::kRecording) continue;
    if (interrupted != nullptr && *interrupted != 0) continue;
    recorded = true;
    if (block_->live.database_bytes.load(std::memory_order_relaxed) != 0 && !draw()) return leave(End::kNotHere);
  }
}

}  // namespace classaccess
