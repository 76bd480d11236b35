#include "agent/cli/hotspot_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace classaccess {
namespace {

constexpr int kSocketSeconds = 15;
constexpr size_t kMostBytes = 1024;  // of an argument, with its end

// The file that makes the JVM open its socket; removed at the end.
class AttachFile {
 public:
  // Empty string or the reason.
  std::string create(const TargetProcess& target) {
    std::string name = "/.attach_pid" + std::to_string(target.own_pid());
    for (const char* place : {"/cwd", "/root/tmp"}) {
      path_ = target.folder() + place + name;
      int fd = open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (fd < 0) continue;
      // Root's is accepted too, but some folders change the owner of a new file.
      struct stat status;
      bool good = fstat(fd, &status) == 0 && (status.st_uid == target.effective_uid() || status.st_uid == 0);
      close(fd);
      if (good) return "";
      unlink(path_.c_str());
    }
    std::string reason = std::string("neither its working folder nor its /tmp can be written: ") + strerror(errno);
    path_.clear();
    return reason;
  }
  ~AttachFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }

 private:
  std::string path_;
};

// A connected socket, or -1.
int connect_to(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return -1;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t n = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

}  // namespace

std::string attach_library(const TargetProcess& target, const std::string& library, const std::string& options) {
  std::string name = "process " + std::to_string(target.pid());
  if (library.size() >= kMostBytes || options.size() >= kMostBytes) return "the library's path is too long";
  std::string socket_path = target.folder() + "/root/tmp/.java_pid" + std::to_string(target.own_pid());
  AttachFile file;
  int fd = connect_to(socket_path);
  if (fd < 0 && (errno == EACCES || errno == EPERM)) {
    return name + " may not be attached to (" + strerror(errno) + "): run the command as the user that it belongs to";
  }
  if (fd < 0) {
    if (!target.catches(SIGQUIT)) {
      return name + " cannot be attached to: it does not listen to SIGQUIT (-Xrs, or it is only starting)";
    }
    std::string problem = file.create(target);
    if (!problem.empty()) return name + " cannot be attached to: " + problem;
    if (kill(target.pid(), SIGQUIT) != 0) {
      return name + " may not be attached to (" + strerror(errno) + "): run the command as the user that it belongs to";
    }
    for (int tries = 0; fd < 0 && tries < kSocketSeconds * 50 && target.alive(); ++tries) {
      usleep(20000);
      fd = connect_to(socket_path);
    }
    if (fd < 0) {
      return target.alive() ? name + " does not answer attach requests (-XX:+DisableAttachMechanism, or it is stopped)"
                            : name + " has ended meanwhile";
    }
  }
  std::string request;
  for (const std::string& word : {std::string("1"), std::string("load"), library, std::string("true"), options}) {
    request += word;
    request += '\0';
  }
  bool sent = write_all(fd, request);
  std::string answer = sent ? read_all(fd) : "";
  close(fd);
  if (answer.empty()) return name + " has closed the connection without an answer";
  size_t line = answer.find('\n');
  std::string said = line == std::string::npos ? "" : answer.substr(line + 1);
  size_t code = said.find("return code: ");
  if (atoi(answer.c_str()) == 0 && code != std::string::npos && atoi(said.c_str() + code + 13) == 0) return "";
  if (code != std::string::npos) return "the agent refuses: see the standard error of " + name;
  return "the JVM refuses to load the agent: " + one_line(said.empty() ? answer : said);
}

}  // namespace classaccess
