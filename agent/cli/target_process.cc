#include "agent/cli/target_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace classaccess {

std::string TargetProcess::check_jvm() const {
  std::string name = "process " + std::to_string(pid_);
  if (!alive()) return "there is no " + name;
  std::ifstream maps(folder_ + "/maps");
  std::string line;
  bool any = false;
  while (std::getline(maps, line)) {
    any = true;
    if (line.find("/libjvm.so") != std::string::npos) return "";
  }
  if (!any && access((folder_ + "/maps").c_str(), R_OK) != 0) {
    return name + " may not be looked into (" + strerror(errno) + "): run the command as the user that it belongs to";
  }
  return any ? name + " is not a JVM: it has no libjvm.so"
             : name + " may not be looked into, or has ended: run the command as the user that it belongs to";
}

bool TargetProcess::alive() const {
  uint64_t started = start_time();
  return started != 0;
}

uint64_t TargetProcess::start_time() const {
  std::ifstream file(folder_ + "/stat");
  std::string line;
  std::getline(file, line);
  // The name in field 2 may hold blanks and parentheses. A zombie has ended.
  size_t at = line.rfind(')');
  if (at == std::string::npos || line.compare(at, 3, ") Z") == 0 || line.compare(at, 3, ") X") == 0) return 0;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = line.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at, nullptr, 10);
}

std::string TargetProcess::status_line(const std::string& name) const {
  std::ifstream file(folder_ + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(name.size() + 1);
  }
  return "";
}

int TargetProcess::own_pid() const {
  std::istringstream words(status_line("NSpid"));
  int last = pid_;
  while (words >> last) {
  }
  return last;
}

uint32_t TargetProcess::effective_uid() const {
  std::istringstream words(status_line("Uid"));
  uint32_t real = 0, effective = 0;
  words >> real >> effective;
  return effective;
}

bool TargetProcess::catches(int signal) const {
  uint64_t caught = std::strtoull(status_line("SigCgt").c_str(), nullptr, 16);
  return (caught >> (signal - 1) & 1) != 0;
}

bool TargetProcess::has_thread(const std::string& name) const {
  std::error_code ec;
  for (const auto& task : std::filesystem::directory_iterator(folder_ + "/task", ec)) {
    std::ifstream file(task.path() / "comm");
    std::string comm;
    if (std::getline(file, comm) && comm == name) return true;
  }
  return false;
}

}  // namespace classaccess
