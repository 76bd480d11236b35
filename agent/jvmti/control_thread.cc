#include "agent/jvmti/control_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "agent/base/raw_syscall.h"
#include "agent/base/terminal_line.h"
#include "agent/protect/heap_gate.h"

#ifndef CLASSACCESS_VERSION
#define CLASSACCESS_VERSION "unknown"
#endif

namespace classaccess {

ControlThread g_control;

namespace {

constexpr unsigned kCloexec = 1;  // MFD_CLOEXEC

// Field 22 of /proc/self/stat; the name in field 2 may hold blanks and parentheses.
uint64_t own_start_time() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  size_t at = line.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = line.find(' ', at + 1);
  return at == std::string::npos ? 0 : strtoull(line.c_str() + at, nullptr, 10);
}

void* map_block(int fd) {
  void* memory = mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, sizeof(ControlBlock), MADV_DONTFORK);  // a child answers nobody
  return memory;
}

// Other processes wait and wake too: no FUTEX_PRIVATE_FLAG.
void wait_for_change(std::atomic<uint32_t>* word, uint32_t seen) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT, seen);
}
void wake_all(std::atomic<uint32_t>* word) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, INT32_MAX);
}

// What the other side has written may lack its end.
std::string bounded(const char* text) { return {text, strnlen(text, ControlBlock::kTextBytes)}; }

void put(char* to, const std::string& text) {
  size_t length = text.size() < ControlBlock::kTextBytes ? text.size() : ControlBlock::kTextBytes - 1;
  memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace

std::string ControlThread::open() {
  if (block_ == nullptr) {
    int fd = static_cast<int>(syscall(SYS_memfd_create, kControlFileName, kCloexec));
    if (fd < 0) return std::string("no control file: memfd_create is refused (") + strerror(errno) + ")";
    void* memory = ftruncate(fd, sizeof(ControlBlock)) == 0 ? map_block(fd) : nullptr;
    if (memory == nullptr) {
      ::close(fd);
      return std::string("no control file: ") + strerror(errno);
    }
    block_ = static_cast<ControlBlock*>(memory);
    fd_ = fd;
  }
  block_->bytes = sizeof(ControlBlock);
  block_->owner_pid = getpid();
  block_->owner_start = own_start_time();
  snprintf(block_->agent_version, sizeof(block_->agent_version), "%s", CLASSACCESS_VERSION);
  std::atomic_thread_fence(std::memory_order_release);
  memcpy(block_->magic, kControlMagic, sizeof(kControlMagic));
  return "";
}

bool ControlThread::adopt(const char* path) {
  int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  void* memory = map_block(fd);
  if (memory == nullptr) {
    ::close(fd);
    return false;
  }
  block_ = static_cast<ControlBlock*>(memory);
  fd_ = fd;
  return true;
}

std::string ControlThread::start(Carry carry) {
  carry_ = carry;
  if (running_ || block_ == nullptr) return "";
  closed_.store(false, std::memory_order_relaxed);
  // Born with every asynchronous signal blocked: none of the application's may land here.
  sigset_t all, old;
  sigfillset(&all);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, signal);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  running_ = true;
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = pthread_create(&thread, &attributes, thread_main, this);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) return "";
  running_ = false;
  return std::string("cannot start the control thread: ") + strerror(error);
}

void ControlThread::close() {
  closed_.store(true, std::memory_order_release);
  if (block_ == nullptr) return;
  if (!running_) return unmap();
  // Senders find no file any more; one who waits is answered.
  memset(block_->magic, 0, sizeof(block_->magic));
}

void ControlThread::unmap() {
  ControlBlock* block = block_;
  block_ = nullptr;
  memset(block->magic, 0, sizeof(block->magic));
  unmap_unused(block);
  ::close(fd_);
  fd_ = -1;
}

// A thread that writes to the terminal may use it, and a writer that could not be waited for.
void ControlThread::unmap_unused(ControlBlock* block) {
  if (!set_terminal_line(nullptr)) return;
  if (block->live.state.load(std::memory_order_acquire) == LiveCounts::kRecording) return;
  munmap(block, sizeof(ControlBlock));
}

void ControlThread::end_live_line() {
  if (block_ == nullptr) return;
  block_->live.state.store(LiveCounts::kEnding, std::memory_order_release);
  wake_all(&block_->live.state);
  constexpr int kMilliseconds = 200;  // a drawer that is stopped, or the terminal is
  for (int i = 0; i < kMilliseconds && block_->line.drawer.load(std::memory_order_acquire) != 0; ++i) usleep(1000);
}

void* ControlThread::thread_main(void* self) {
  prctl(PR_SET_NAME, "classaccess-ctl");
  ++t_agent_depth;  // nothing it does is the program's
  static_cast<ControlThread*>(self)->serve();
  return nullptr;
}

void ControlThread::serve() {
  ControlBlock* block = block_;
  for (;;) {
    uint32_t number = block->requests.load(std::memory_order_acquire);
    if (number == block->answered.load(std::memory_order_relaxed)) {
      wait_for_change(&block->requests, number);
      continue;
    }
    ControlCommand command = block->command;
    ControlAnswer answer;
    if (closed_.load(std::memory_order_acquire)) {
      answer.text = "the JVM is ending";
    } else {
      answer = carry_(command, bounded(block->arguments));
    }
    put(block->answer, answer.text);
    block->status = answer.ok ? 0 : 1;
    bool last = command == ControlCommand::kDetach && answer.ok;
    // Before the answer: whoever attaches again after it finds neither file nor thread.
    if (last) {
      block_ = nullptr;
      memset(block->magic, 0, sizeof(block->magic));
      ::close(fd_);
      fd_ = -1;
      running_ = false;
    }
    block->answered.store(number, std::memory_order_release);
    wake_all(&block->answered);
    if (last) {
      unmap_unused(block);
      return;
    }
  }
}

bool ControlThread::other_in_process() const {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:classaccess-control") == std::string::npos) continue;
    if (strtoull(line.c_str(), nullptr, 16) != reinterpret_cast<uint64_t>(block_)) return true;
  }
  return false;
}

}  // namespace classaccess
