#include "agent/cli/control_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <filesystem>

namespace classaccess {
namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// At most half a second: the process may be gone.
void wait_for_change(std::atomic<uint32_t>* word, uint32_t seen) {
  timespec most = {0, 500000000};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, nullptr, 0);
}

}  // namespace

ControlClient::~ControlClient() {
  if (block_ != nullptr) munmap(block_, sizeof(ControlBlock));
  if (fd_ >= 0) close(fd_);
}

ControlClient::Found ControlClient::open(int seconds) {
  std::string name = "process " + std::to_string(target_.pid());
  started_ = target_.start_time();
  if (started_ == 0) {
    problem_ = "there is no " + name;
    return Found::kProblem;
  }
  std::error_code ec;
  std::filesystem::directory_iterator descriptors(target_.folder() + "/fd", ec);
  if (ec) {
    problem_ = name + " may not be looked into (" + ec.message() + "): run the command as the user that it belongs to";
    return Found::kProblem;
  }
  std::string wanted = std::string("/memfd:") + kControlFileName + " (deleted)";
  bool foreign = false;
  for (const auto& entry : descriptors) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != wanted) continue;
    int fd = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || static_cast<uint64_t>(status.st_size) < sizeof(ControlBlock)) {
      if (fd >= 0) close(fd);
      continue;
    }
    void* memory = mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    auto* block = static_cast<ControlBlock*>(memory);
    bool mapped = memory != MAP_FAILED;
    bool whole = mapped && memcmp(block->magic, kControlMagic, sizeof(kControlMagic)) == 0 &&
                 block->bytes == sizeof(ControlBlock);
    if (whole && block->owner_pid == target_.own_pid() && block->owner_start == started_) {
      block_ = block;
      fd_ = fd;
      break;
    }
    foreign |= whole;
    if (mapped) munmap(block, sizeof(ControlBlock));
    close(fd);
  }
  if (block_ == nullptr) {
    problem_ = foreign ? name + " has a control file of another process (a fork of a traced JVM): nothing runs in it"
                       : name + " has no agent that can be controlled: `classaccess attach " +
                             std::to_string(target_.pid()) + "` starts one";
    return foreign ? Found::kProblem : Found::kNone;
  }
  for (double until = now() + seconds; flock(fd_, LOCK_EX | LOCK_NB) != 0; usleep(20000)) {
    if (now() < until) continue;
    problem_ = "another classaccess command is talking to " + name;
    return Found::kProblem;
  }
  return Found::kYes;
}

void ControlClient::unlock() { flock(fd_, LOCK_UN); }

bool ControlClient::wait_for_answer(uint32_t number, int seconds, std::string* reason) {
  std::string name = "process " + std::to_string(target_.pid());
  for (double until = now() + seconds;;) {
    uint32_t answered = block_->answered.load(std::memory_order_acquire);
    if (answered == number) return true;
    wait_for_change(&block_->answered, answered);
    if (block_->answered.load(std::memory_order_acquire) == number) return true;
    if (target_.start_time() != started_) {
      *reason = name + " has ended meanwhile";
      return false;
    }
    if (now() < until) continue;
    *reason = "the agent in " + name + " has not answered for " + std::to_string(seconds) +
              " s (is the process stopped?); what was asked for is done when it can";
    return false;
  }
}

bool ControlClient::ask(ControlCommand command, const std::string& arguments, int seconds, std::string* answer) {
  if (arguments.size() >= ControlBlock::kTextBytes) {
    *answer = "the options are too long";
    return false;
  }
  // What a command that was killed has asked for.
  uint32_t last = block_->requests.load(std::memory_order_acquire);
  if (!wait_for_answer(last, seconds, answer)) return false;
  block_->command = command;
  memcpy(block_->arguments, arguments.c_str(), arguments.size() + 1);
  block_->requests.store(last + 1, std::memory_order_release);
  syscall(SYS_futex, &block_->requests, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  if (!wait_for_answer(last + 1, seconds, answer)) return false;
  *answer = std::string(block_->answer, strnlen(block_->answer, ControlBlock::kTextBytes));
  return block_->status == 0;
}

}  // namespace classaccess
