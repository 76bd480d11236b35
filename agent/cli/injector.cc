#include "agent/cli/injector.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "agent/cli/remote_symbol.h"

namespace classaccess {
namespace {

constexpr uint8_t kBreakpoint = 0xcc;  // int3

}  // namespace

std::string Injector::seize() {
  // Not EXITKILL: the program outlives us.
  if (ptrace(PTRACE_SEIZE, tracee_.pid(), 0, PTRACE_O_TRACEEXEC) == 0) return "";
  return strerror(errno);
}

void Injector::follow() {
  for (;;) {
    // While the library waits for JNI_CreateJavaVM only the control file tells of it.
    int status = 0;
    pid_t got = waitpid(tracee_.pid(), &status, __WALL | (loading_ != 0 ? WNOHANG : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got == 0) {
      if (let_go_if_created()) return;
      usleep(2000);
      continue;
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (executed_ && stage() != InjectionStage::kCreating) {
        fprintf(stderr, "classaccess: the program has ended without starting a JVM: nothing was recorded\n");
      }
      return;
    }
    if (stopped(status) == Next::kDone) return;
  }
}

bool Injector::let_go_if_created() {
  if (stage() != InjectionStage::kCreating) return false;
  if (ptrace(PTRACE_INTERRUPT, tracee_.pid(), 0, 0) != 0) return true;
  int status = tracee_.wait();
  int signal = status >= 0 && WIFSTOPPED(status) && (status >> 16) == 0 ? WSTOPSIG(status) : 0;
  ptrace(PTRACE_DETACH, tracee_.pid(), 0, signal);
  return true;
}

Injector::Next Injector::stopped(int status) {
  int signal = WSTOPSIG(status), event = status >> 16;
  int deliver = 0;
  if (event == PTRACE_EVENT_EXEC) {
    // A new program: what was in the old one is gone.
    loading_ = 0;
    executed_ = true;
    block_->stage.store(static_cast<uint32_t>(InjectionStage::kWaiting), std::memory_order_release);
    stop_at_entry();
  } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    ptrace(PTRACE_LISTEN, tracee_.pid(), 0, 0);  // job control
    return Next::kGoOn;
  } else if (event == 0 && signal == SIGTRAP) {
    user_regs_struct regs;
    if (tracee_.registers(&regs) && entry_ != 0 && regs.rip == entry_ + 1) {
      if (at_entry() == Next::kDone) return Next::kDone;
    } else if (loading_ != 0 && regs.rip > loading_ && regs.rip <= loading_ + loading_code_bytes()) {
      LoadingData data;
      char text[512] = "";
      tracee_.read(loading_ + kLoadingDataOffset, &data, sizeof(data));
      if (data.failed == 1) tracee_.read(data.error, text, sizeof(text) - 1);
      end_program(data.failed == 1 ? std::string("the agent cannot be loaded: ") + text
                                   : "the agent cannot open its control file");
      return Next::kDone;
    } else {
      deliver = signal;
    }
  } else if (event == 0) {
    deliver = signal;
  }
  if (ptrace(PTRACE_CONT, tracee_.pid(), 0, deliver) != 0) return errno == ESRCH ? Next::kGoOn : Next::kDone;
  return Next::kGoOn;
}

void Injector::stop_at_entry() {
  entry_ = auxiliary_value(tracee_.pid(), AT_ENTRY);
  if (entry_ == 0 || !tracee_.read(entry_, &entry_byte_, 1) || !tracee_.write(entry_, &kBreakpoint, 1)) entry_ = 0;
}

Injector::Next Injector::at_entry() {
  user_regs_struct regs;
  tracee_.registers(&regs);
  tracee_.write(entry_, &entry_byte_, 1);
  regs.rip = entry_;
  tracee_.set_registers(regs);
  // A shell, say, that will execute java: looked at again then.
  bool launcher = is_mapped(tracee_.pid(), "libjli.so") || is_mapped(tracee_.pid(), "libjvm.so");
  if (launcher) {
    std::string problem = inject();
    if (!problem.empty()) {
      end_program(problem);
      return Next::kDone;
    }
  }
  entry_ = 0;
  tracee_.send_kept();
  return Next::kGoOn;
}

std::string Injector::inject() {
  const pid_t pid = tracee_.pid();
  LoadingData data;
  data.dlopen = remote_function(pid, "dlopen");
  data.dlsym = remote_function(pid, "dlsym");
  data.dlerror = remote_function(pid, "dlerror");
  data.entry = entry_;
  if (data.dlopen == 0 || data.dlsym == 0 || data.dlerror == 0) return "the program's C library has no dlopen";
  snprintf(data.library, sizeof(data.library), "%s", library_.c_str());
  snprintf(data.control, sizeof(data.control), "/proc/%d/fd/%d", getpid(), control_fd_);
  long block = tracee_.system_call(entry_, SYS_mmap, 0, static_cast<long>(kBlockBytes), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block < 0 && block > -4096) return std::string("no memory in the program: ") + strerror(static_cast<int>(-block));
  auto at = static_cast<uint64_t>(block);
  if (!tracee_.write(at, loading_code(), loading_code_bytes()) ||
      !tracee_.write(at + kLoadingDataOffset, &data, sizeof(data))) {
    return std::string("the program's memory cannot be written: ") + strerror(errno);
  }
  long error =
      tracee_.system_call(entry_, SYS_mprotect, block, static_cast<long>(kLoadingDataOffset), PROT_READ | PROT_EXEC);
  if (error != 0) return std::string("the loading code may not be executed: ") + strerror(static_cast<int>(-error));
  user_regs_struct regs;
  if (!tracee_.registers(&regs)) return "the program has ended";
  regs.rip = at;
  if (!tracee_.set_registers(regs)) return "the program has ended";
  loading_ = at;
  return "";
}

// Before its first instruction: nothing of the program has happened.
void Injector::end_program(const std::string& reason) {
  fprintf(stderr, "classaccess: %s\n", reason.c_str());
  user_regs_struct regs;
  const uint8_t instruction[2] = {0x0f, 0x05};  // syscall
  const uint64_t at = entry_ != 0 ? entry_ : loading_;
  if (tracee_.registers(&regs) && tracee_.write(at, instruction, 2)) {
    regs.rip = at;
    regs.rax = SYS_exit_group;
    regs.orig_rax = ~0ull;
    regs.rdi = 1;
    tracee_.set_registers(regs);
  }
  ptrace(PTRACE_DETACH, tracee_.pid(), 0, 0);
}

}  // namespace classaccess
