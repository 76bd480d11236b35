#include "tests/jvm/jdk.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>

#include "tests/jvm/process.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

// JAVA_VERSION="17.0.15" of the `release` file; 0 if it is not there.
int major_version(const fs::path& home) {
  std::ifstream release(home / "release");
  std::string line;
  const std::string key = "JAVA_VERSION=\"";
  while (std::getline(release, line)) {
    if (line.rfind(key, 0) == 0) return std::atoi(line.c_str() + key.size());
  }
  return 0;
}

void add_jdk(const fs::path& candidate, std::vector<Jdk>* jdks) {
  std::error_code ec;
  fs::path home = fs::canonical(candidate, ec);
  if (ec || !fs::exists(home / "bin/java", ec) || !fs::exists(home / "lib/server/libjvm.so", ec)) return;
  for (const Jdk& known : *jdks) {
    if (known.home == home.string()) return;
  }
  int major = major_version(home);
  if (major < 17) return;
  jdks->push_back(Jdk{home.string(), "", major});
}

std::vector<Jdk> find_jdks() {
  std::vector<Jdk> jdks;
  if (const char* home = std::getenv("JAVA_HOME")) add_jdk(home, &jdks);
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/usr/lib/jvm", ec)) add_jdk(entry.path(), &jdks);
  std::sort(jdks.begin(), jdks.end(),
            [](const Jdk& a, const Jdk& b) { return a.major != b.major ? a.major < b.major : a.home < b.home; });
  std::map<int, int> seen;
  for (Jdk& jdk : jdks) {
    jdk.name = "jdk" + std::to_string(jdk.major);
    int earlier = seen[jdk.major]++;
    if (earlier > 0) jdk.name += static_cast<char>('a' + earlier);
  }
  return jdks;
}

const Jdk& no_jdk() {
  static const Jdk none{"/no-jdk-found", "none", 0};
  return none;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Jdk& jdk) { return out << jdk.home; }

const std::vector<Jdk>& installed_jdks() {
  static const std::vector<Jdk> jdks = find_jdks();
  return jdks;
}

const Jdk& oldest_jdk() { return installed_jdks().empty() ? no_jdk() : installed_jdks().front(); }
std::vector<Jdk> oldest_and_newest_jdk() {
  const std::vector<Jdk>& all = installed_jdks();
  return all.size() < 2 ? all : std::vector<Jdk>{all.front(), all.back()};
}

const Jdk& newest_jdk() { return installed_jdks().empty() ? no_jdk() : installed_jdks().back(); }

bool jdk_accepts(const Jdk& jdk, const std::vector<std::string>& flags) {
  static std::map<std::string, bool> known;
  std::vector<std::string> command{jdk.java()};
  command.insert(command.end(), flags.begin(), flags.end());
  command.push_back("-version");
  std::string key = shell_line(command);
  auto found = known.find(key);
  if (found != known.end()) return found->second;
  ProcessSpec spec;
  spec.command = command;
  spec.limit_seconds = 60;
  return known[key] = run_process(spec).status == 0;
}

bool full_run() {
  const char* full = std::getenv("CLASSACCESS_FULL");
  return full != nullptr && *full != '\0' && std::string(full) != "0";
}

}  // namespace classaccess
