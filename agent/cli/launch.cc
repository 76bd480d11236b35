#include "agent/cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/cli/injector.h"
#include "agent/cli/live_line.h"
#include "classaccess/control.h"

namespace classaccess {
namespace {

// What the helper says when it has, or has not, seized the process.
std::string read_line(int fd) {
  std::string text;
  char c;
  while (read(fd, &c, 1) == 1 && c != '\n') text += c;
  return text;
}

std::string other_way(const std::string& library, const std::string& options) {
  return "start it with -agentpath:" + library + (options.empty() ? "" : "=" + options) + " instead";
}

[[noreturn]] void help(pid_t program, int ready, int control, ControlBlock* block, const std::string& library,
                       bool progress) {
  // A terminal's signals are for the program.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  Injector injector(program, control, block, library);
  std::string problem = injector.seize();
  dprintf(ready, "%s\n", problem.empty() ? "ready" : problem.c_str());
  close(ready);
  if (problem.empty()) injector.follow();
  bool created = block->stage.load(std::memory_order_acquire) == static_cast<uint32_t>(InjectionStage::kCreating);
  if (progress && created && LiveLine::possible()) {
    close_range(3, ~0u, 0);  // pipes that somebody waits for
    LiveLine(block, program).watch(false, nullptr);
  }
  _exit(0);
}

}  // namespace

std::string launch(const std::vector<std::string>& command, const std::string& library, const std::string& options,
                   bool progress) {
  if (library.find('=') != std::string::npos) return "the path of libclassaccess.so may hold no '=': " + library;
  if (library.size() >= sizeof(LoadingData::library)) return "the library's path is too long";
  if (options.size() >= ControlBlock::kTextBytes) return "the options are too long";
  constexpr unsigned kCloexec = 1;  // MFD_CLOEXEC
  int control = static_cast<int>(syscall(SYS_memfd_create, kControlFileName, kCloexec));
  if (control < 0 || ftruncate(control, sizeof(ControlBlock)) != 0) {
    return std::string("memfd_create is refused (") + strerror(errno) + "): " + other_way(library, options);
  }
  void* memory = mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
  if (memory == MAP_FAILED) return std::string("no memory: ") + strerror(errno);
  auto* block = static_cast<ControlBlock*>(memory);
  memcpy(block->start_options, options.c_str(), options.size() + 1);

  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return strerror(errno);
  const pid_t own = getpid();
  // Where only ancestors may trace (Yama): the helper is none.
  constexpr unsigned long kAny = ~0ul;
  prctl(PR_SET_PTRACER, kAny, 0, 0, 0);
  pid_t child = fork();
  if (child < 0) return std::string("fork: ") + strerror(errno);
  if (child == 0) {
    close(ready[0]);
    if (fork() == 0) help(own, ready[1], control, block, library, progress);
    _exit(0);
  }
  close(ready[1]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::string said = read_line(ready[0]);
  close(ready[0]);
  prctl(PR_SET_PTRACER, 0, 0, 0, 0);
  if (said != "ready") {
    return "ptrace is refused here (" + (said.empty() ? "no helper" : said) + "): " + other_way(library, options);
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  int error = errno;
  block->stage.store(static_cast<uint32_t>(InjectionStage::kFailed), std::memory_order_release);
  return "cannot run '" + command[0] + "': " + strerror(error);
}

}  // namespace classaccess
