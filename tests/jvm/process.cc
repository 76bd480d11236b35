#include "tests/jvm/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace classaccess {
namespace {

// In the child, between fork and exec: system calls only.
[[noreturn]] void become(const ProcessSpec& spec, char** argv, const char* folder, const char* out_path,
                         const char* err_path) {
  setpgid(0, 0);
  if (chdir(folder) != 0) _exit(126);
  int in = open("/dev/null", O_RDONLY);
  int out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  int err = open(err_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (spec.file_size_limit != 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{spec.file_size_limit, spec.file_size_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

Process::Process(const ProcessSpec& spec) : spec_(spec) {
  std::string folder = spec_.folder;
  if (folder.empty()) {
    char name[] = "/tmp/classaccess-process-XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder = name;
    temporary_ = true;
  }
  out_path_ = folder + "/stdout";
  err_path_ = folder + "/stderr";
  std::vector<char*> argv;
  for (std::string& word : spec_.command) argv.push_back(word.data());
  argv.push_back(nullptr);
  started_ = monotonic_seconds();
  pid_ = fork();
  if (pid_ == 0) become(spec_, argv.data(), folder.c_str(), out_path_.c_str(), err_path_.c_str());
  if (pid_ > 0) setpgid(pid_, pid_);
  if (pid_ < 0) ended_ = true;
}

Process::~Process() {
  if (!ended_) {
    kill_now();
    wait();
  }
  if (temporary_) {
    unlink(out_path_.c_str());
    unlink(err_path_.c_str());
    rmdir(out_path_.substr(0, out_path_.rfind('/')).c_str());
  }
}

void Process::note_end(int wait_status) {
  ended_ = true;
  result_.seconds = monotonic_seconds() - started_;
  if (WIFEXITED(wait_status)) result_.status = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) result_.signal = WTERMSIG(wait_status);
  kill(-pid_, SIGKILL);  // whatever the child left behind
}

bool Process::ended() {
  int wait_status = 0;
  if (!ended_ && waitpid(pid_, &wait_status, WNOHANG) == pid_) note_end(wait_status);
  return ended_;
}

void Process::kill_now() {
  if (!ended_) kill(-pid_, SIGKILL);
}

ProcessResult Process::wait() {
  if (!wait_until([this] { return ended(); }, spec_.limit_seconds - (monotonic_seconds() - started_))) {
    result_.timed_out = true;
    kill_now();
    int wait_status = 0;
    if (waitpid(pid_, &wait_status, 0) == pid_) note_end(wait_status);
  }
  result_.out = read_text(out_path_);
  result_.err = read_text(err_path_);
  return result_;
}

ProcessResult run_process(const ProcessSpec& spec) {
  Process process(spec);
  return process.wait();
}

std::string shell_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    if (!line.empty()) line += ' ';
    bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$*?[]()!&;<>|~`#") == std::string::npos;
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

double monotonic_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void sleep_seconds(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

bool wait_until(const std::function<bool()>& condition, double seconds) {
  double end = monotonic_seconds() + seconds;
  while (!condition()) {
    if (monotonic_seconds() >= end) return false;
    usleep(10000);
  }
  return true;
}

}  // namespace classaccess
