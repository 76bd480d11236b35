#include "agent/cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "agent/cli/agent_library.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

constexpr int64_t kLittleSpace = 1ll << 30, kNoSpace = 64ll << 20;  // bytes for the database
constexpr int64_t kUsualMaps = 65530;                               // the kernel's default

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of a line `name : value`.
std::string value_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key = line.substr(0, colon);
    while (!key.empty() && (key.back() == ' ' || key.back() == '\t')) key.pop_back();
    if (key == name) return line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size()));
  }
  return "";
}

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream words(text);
  for (std::string one; words >> one;) {
    if (one == word) return true;
  }
  return false;
}

std::string reason(int error) { return strerror(error); }

Finding processor() {
  utsname name = {};
  uname(&name);
  Finding finding{Health::kGood, "processor", std::string(name.machine) + ", " + name.sysname + " " + name.release, ""};
  if (strcmp(name.machine, "x86_64") != 0 || strcmp(name.sysname, "Linux") != 0) {
    finding.health = Health::kBad;
    finding.advice = "classaccess runs on Linux x86-64 only";
  }
  return finding;
}

Finding keys(const DoctorPlaces& places, const SystemProbe& probe) {
  std::string flags = value_in(places.root + "/proc/cpuinfo", "flags");
  const std::string fallback = "recordings fall back to protect=mprotect: slower, and Shenandoah is refused";
  if (!has_word(flags, "pku")) return {Health::kNote, "protection keys", "this processor has none", fallback};
  if (!has_word(flags, "ospke")) {
    return {Health::kNote, "protection keys", "the kernel does not use them", fallback + "; boot without `nopku`"};
  }
  int free = probe.protection_keys();
  if (free > 0) return {Health::kGood, "protection keys", std::to_string(free) + " free", ""};
  if (free == 0 || free == -ENOSPC) return {Health::kNote, "protection keys", "all are taken", fallback};
  return {Health::kNote, "protection keys", "pkey_alloc is refused: " + reason(-free),
          fallback + "; allow pkey_alloc, pkey_free and pkey_mprotect in the container's seccomp profile"};
}

Finding seccomp(const DoctorPlaces& places) {
  std::string mode = value_in(places.root + "/proc/self/status", "Seccomp");
  if (mode == "2") {
    return {Health::kNote, "seccomp", "a filter is in force (a container?)",
            "what this page tries was tried under it; processes elsewhere may have another one"};
  }
  return {Health::kGood, "seccomp", mode.empty() ? "not known" : "no filter", ""};
}

Finding second_view(const SystemProbe& probe) {
  int error = probe.memfd();
  if (error == 0) return {Health::kGood, "memfd_create", "works", ""};
  return {Health::kNote, "memfd_create", "refused: " + reason(error),
          "recordings use twin=off (see the limits in the README), `run` and control commands do not work: allow it"};
}

Finding library_probes(const SystemProbe& probe) {
  int barrier = probe.core_serializing_membarrier(), memory = probe.write_own_memory();
  if (barrier == 0 && memory == 0)
    return {Health::kGood, "probes in libraries", "membarrier and /proc/self/mem work", ""};
  std::string what = barrier != 0 ? "membarrier is refused: " + reason(barrier)
                                  : "/proc/self/mem cannot be written: " + reason(memory);
  return {Health::kNote, "probes in libraries", what, "accesses of libjvm and JNI libraries trap each time: slower"};
}

Finding mappings(const DoctorPlaces& places) {
  std::string text = first_line(places.root + "/proc/sys/vm/max_map_count");
  int64_t count = std::strtoll(text.c_str(), nullptr, 10);
  if (text.empty()) return {Health::kNote, "vm.max_map_count", "not known", ""};
  Finding finding{Health::kGood, "vm.max_map_count", with_commas(count), ""};
  if (count < kUsualMaps) {
    finding.health = Health::kNote;
    finding.advice =
        "less than the kernel's default; mode=pages needs two for each open page: `sysctl -w vm.max_map_count=65530`";
  }
  return finding;
}

Finding tracing(const DoctorPlaces& places) {
  std::string scope = first_line(places.root + "/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty()) return {Health::kGood, "ptrace (Yama)", "not restricted", ""};
  if (scope == "0" || scope == "1") return {Health::kGood, "ptrace (Yama)", "ptrace_scope " + scope, ""};
  std::string advice = "`classaccess run` needs " +
                       std::string(scope == "2" ? "CAP_SYS_PTRACE" : "ptrace, which is off until the next boot") +
                       ": use java -agentpath:... in its place, or `sysctl -w kernel.yama.ptrace_scope=1`";
  return {Health::kNote, "ptrace (Yama)", "ptrace_scope " + scope, advice};
}

Finding overcommit(const DoctorPlaces& places) {
  std::string mode = first_line(places.root + "/proc/sys/vm/overcommit_memory");
  if (mode != "2") return {Health::kGood, "vm.overcommit_memory", mode.empty() ? "not known" : mode, ""};
  return {Health::kNote, "vm.overcommit_memory", "2",
          "the agent's tables and the second view of the heap may be refused: `sysctl -w vm.overcommit_memory=0`"};
}

Finding limits() {
  rlimit space = {}, file = {};
  getrlimit(RLIMIT_AS, &space);
  getrlimit(RLIMIT_FSIZE, &file);
  std::string found, advice;
  if (space.rlim_cur != RLIM_INFINITY) {
    found = "ulimit -v " + std::to_string(space.rlim_cur >> 10);
    advice = "there is no room for probes then: each access traps. `ulimit -v unlimited`";
  }
  if (file.rlim_cur != RLIM_INFINITY) {
    found += (found.empty() ? "" : ", ") + std::string("ulimit -f ") + std::to_string(file.rlim_cur >> 10);
    advice += (advice.empty() ? "" : "; ") + std::string("a larger database ends the recording: `ulimit -f unlimited`");
  }
  if (found.empty()) return {Health::kGood, "ulimit", "no limit of memory or file size", ""};
  return {Health::kNote, "ulimit", found, advice};
}

Finding huge_pages(const DoctorPlaces& places) {
  std::string text = first_line(places.root + "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  size_t open = text.find('['), close = text.find(']');
  std::string mode =
      open == std::string::npos || close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
  if (mode.empty()) return {Health::kGood, "huge pages of the heap", "the kernel has none", ""};
  if (mode == "never" || mode == "deny") {
    return {Health::kGood, "huge pages of the heap", "shmem_enabled: " + mode,
            "a program with -XX:+UseTransparentHugePages has none under the agent; `advise` allows them"};
  }
  return {Health::kGood, "huge pages of the heap", "shmem_enabled: " + mode, ""};
}

Finding preloaded() {
  const char* preload = std::getenv("LD_PRELOAD");
  if (preload == nullptr || preload[0] == '\0') return {Health::kGood, "LD_PRELOAD", "not set", ""};
  if (strstr(preload, "libjsig") != nullptr) {
    return {Health::kGood, "LD_PRELOAD", printable(preload), "libjsig is understood; it is not needed for classaccess"};
  }
  return {Health::kNote, "LD_PRELOAD", printable(preload),
          "a library that takes over malloc, mmap or signals can disturb a recording: try without it first"};
}

Finding agent(const DoctorPlaces& places) {
  std::string problem, library = find_agent_library(places.agent, &problem);
  if (!library.empty()) return {Health::kGood, "agent", library, ""};
  return {Health::kBad, "agent", problem, "give --agent FILE, or set CLASSACCESS_AGENT"};
}

Finding disk(const DoctorPlaces& places) {
  Finding finding{Health::kGood, "database folder", places.folder, ""};
  struct statfs info = {};
  if (statfs(places.folder.c_str(), &info) != 0) {
    return {Health::kBad, "database folder", places.folder + ": " + reason(errno), "give an existing folder to out="};
  }
  if (access(places.folder.c_str(), W_OK | X_OK) != 0) {
    return {Health::kBad, "database folder", places.folder + ": " + reason(errno), "give another folder to out="};
  }
  int64_t space = static_cast<int64_t>(info.f_bavail) * info.f_bsize;
  finding.found += ": " + with_commas(space >> 20) + " MB free";
  if (space < kLittleSpace) {
    finding.health = space < kNoSpace ? Health::kBad : Health::kNote;
    finding.advice =
        "a single row takes about 30 bytes: 1,000,000 of them (the default) 30 MB; set out= to where there is "
        "more room, or events=off";
  }
  constexpr long kSmb2 = 0xfe534d42, kCifs = 0xff534d42, kFuse = 0x65735546;
  long type = static_cast<long>(static_cast<uint32_t>(info.f_type));
  if (type == NFS_SUPER_MAGIC || type == kSmb2 || type == kCifs || type == kFuse) {
    finding.health = std::max(finding.health, Health::kNote);
    finding.advice +=
        (finding.advice.empty() ? "" : "; ") +
        std::string("a network file system: readers may have to wait for the writer; a local one is better");
  }
  return finding;
}

int try_memfd() {
  int fd = static_cast<int>(syscall(SYS_memfd_create, "classaccess-doctor", MFD_CLOEXEC));
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

int free_keys() {
  std::vector<int> taken;
  int error = 0;
  while (taken.size() < 16) {
    int key = static_cast<int>(syscall(SYS_pkey_alloc, 0, 0));
    if (key < 0) {
      error = errno;
      break;
    }
    taken.push_back(key);
  }
  for (int key : taken) syscall(SYS_pkey_free, key);
  return taken.empty() ? -error : static_cast<int>(taken.size());
}

int try_membarrier() {
  long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0) return errno;
  return (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) != 0 ? 0 : ENOSYS;
}

// Writes to a page that may not be written otherwise, as code may not.
int try_own_memory() {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  int error = page == MAP_FAILED || fd < 0 ? errno : 0;
  char byte = 1;
  if (error == 0 && pwrite(fd, &byte, 1, reinterpret_cast<off_t>(page)) != 1) error = errno;
  if (fd >= 0) close(fd);
  if (page != MAP_FAILED) munmap(page, 4096);
  return error;
}

}  // namespace

SystemProbe real_probe() { return {free_keys, try_memfd, try_membarrier, try_own_memory}; }

std::vector<Finding> examine(const DoctorPlaces& places, const SystemProbe& probe) {
  std::vector<Finding> all = {
      processor(),     keys(places, probe), second_view(probe), library_probes(probe), seccomp(places),
      tracing(places), mappings(places),    overcommit(places), huge_pages(places),    limits(),
      preloaded()};
  for (Finding& finding : examine_jdks(places)) all.push_back(std::move(finding));
  all.push_back(agent(places));
  all.push_back(disk(places));
  return all;
}

std::string findings_text(const std::vector<Finding>& findings, size_t width) {
  size_t widest = 0;
  for (const Finding& finding : findings) widest = std::max(widest, display_width(finding.what));
  std::string text;
  auto add = [&](const std::string& mark, const std::string& what, const std::string& said) {
    std::string start = pad_right(mark, 6) + pad_right(what, widest) + "  ";
    std::vector<std::string> lines = wrap(said, width > start.size() + 20 ? width - start.size() : 20);
    for (size_t i = 0; i < lines.size(); ++i)
      text += (i == 0 ? start : std::string(start.size(), ' ')) + lines[i] + "\n";
  };
  for (const Finding& finding : findings) {
    const char* mark = finding.health == Health::kGood ? "ok" : finding.health == Health::kNote ? "note" : "BAD";
    add(mark, finding.what, printable(finding.found));
    if (!finding.advice.empty()) add("", "", "-> " + finding.advice);
  }
  bool bad = exit_status(findings) != 0;
  return text + (bad ? "\nNothing can be recorded before what is marked BAD is put right.\n" : "\nReady to record.\n");
}

int exit_status(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.health == Health::kBad; }) ? 1
                                                                                                                  : 0;
}

}  // namespace classaccess
