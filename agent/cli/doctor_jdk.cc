// The JDKs of a machine: version, vendor, and whether their libjvm tells what the agent asks for.
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/cli/doctor.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

// Where the VM describes its own structures (share/runtime/vmStructs.hpp); the agent reads no other symbol.
constexpr const char* kNeeded[] = {"gHotSpotVMStructs", "gHotSpotVMTypes", "gHotSpotVMIntConstants",
                                   "gHotSpotVMLongConstants"};

// A library's file, mapped.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
      size_ = static_cast<size_t>(info.st_size);
      void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      if (memory != MAP_FAILED) data_ = static_cast<const char*>(memory);
    }
    if (fd >= 0) close(fd);
  }
  ~ElfFile() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool is_x86_64() const {
    auto* header = at<Elf64_Ehdr>(0);
    return header != nullptr && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == EM_X86_64;
  }

  // The names it exports.
  std::set<std::string> exported() const {
    std::set<std::string> names;
    auto* header = at<Elf64_Ehdr>(0);
    auto* sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    for (int i = 0; sections != nullptr && i < header->e_shnum; ++i) {
      const Elf64_Shdr& section = sections[i];
      if (section.sh_type != SHT_DYNSYM || section.sh_link >= header->e_shnum) continue;
      const Elf64_Shdr& strings = sections[section.sh_link];
      const char* text = at<char>(strings.sh_offset, strings.sh_size);
      size_t count = section.sh_size / sizeof(Elf64_Sym);
      auto* symbols = at<Elf64_Sym>(section.sh_offset, count);
      if (text == nullptr || symbols == nullptr || strings.sh_size == 0 || text[strings.sh_size - 1] != '\0') continue;
      for (size_t k = 0; k < count; ++k) {
        if (symbols[k].st_shndx != SHN_UNDEF && symbols[k].st_name < strings.sh_size)
          names.insert(text + symbols[k].st_name);
      }
    }
    return names;
  }

 private:
  template <typename T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    bool inside = data_ != nullptr && offset <= size_ && count <= (size_ - offset) / sizeof(T);
    return inside ? reinterpret_cast<const T*>(data_ + offset) : nullptr;
  }

  const char* data_ = nullptr;
  size_t size_ = 0;
};

// KEY="value" of the JDK's file `release`.
std::string release_value(const std::string& home, const std::string& key) {
  std::ifstream file(home + "/release");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + "=", 0) != 0) continue;
    std::string value = line.substr(key.size() + 1);
    value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
    return value;
  }
  return "";
}

Finding examine_jdk(const std::string& home) {
  std::string version = release_value(home, "JAVA_VERSION"), vendor = release_value(home, "IMPLEMENTOR");
  Finding finding{Health::kGood, "JDK", home, ""};
  if (!version.empty()) finding.found += ": " + version + (vendor.empty() ? "" : ", " + vendor);
  auto no = [&](const std::string& why) {
    finding.health = Health::kNote;
    finding.advice = why;
    return finding;
  };
  std::string libjvm = home + "/lib/server/libjvm.so";
  if (access(libjvm.c_str(), R_OK) != 0) return no("not usable: it has no lib/server/libjvm.so");
  ElfFile library(libjvm);
  if (!library.is_x86_64()) return no("not usable: its libjvm.so is not for x86-64");
  std::set<std::string> names = library.exported();
  std::string missing;
  for (const char* name : kNeeded) {
    if (names.count(name) == 0) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty()) return no("not usable: its libjvm.so does not export " + missing + " (not HotSpot?)");
  int major = std::atoi(version.c_str());
  if (version.empty()) return no("its version is not known (no file `release`); 17, 21 and 25 are supported");
  if (major < 17) return no("not usable: 17, 21 and 25 are supported");
  if (major != 17 && major != 21 && major != 25) {
    finding.advice = "may work: 17, 21 and 25 are supported; a recording refuses to start on a layout it does not know";
  }
  if (access((home + "/lib/libjsig.so").c_str(), R_OK) == 0) finding.found += ", libjsig";
  return finding;
}

bool usable(const Finding& finding) { return finding.health == Health::kGood; }

}  // namespace

std::vector<Finding> examine_jdks(const DoctorPlaces& places) {
  std::vector<std::string> homes = places.jdks;
  std::error_code ec;
  std::vector<std::string> installed;
  for (const auto& entry : fs::directory_iterator(places.root + "/usr/lib/jvm", ec)) {
    if (fs::exists(entry.path() / "bin/java", ec)) installed.push_back(entry.path());
  }
  std::sort(installed.begin(), installed.end());
  homes.insert(homes.end(), installed.begin(), installed.end());
  std::vector<Finding> all;
  std::set<std::string> seen;
  for (const std::string& home : homes) {
    fs::path real = fs::canonical(home, ec);
    if (ec) real = home;
    if (seen.insert(real.string()).second) all.push_back(examine_jdk(real.string()));
  }
  if (std::none_of(all.begin(), all.end(), usable)) {
    all.push_back({Health::kBad, "JDK", all.empty() ? "none found in JAVA_HOME, PATH, /usr/lib/jvm" : "none is usable",
                   "install a HotSpot JDK 17, 21 or 25 (Debian: openjdk-17-jdk-headless), or set JAVA_HOME"});
  }
  return all;
}

std::vector<std::string> jdks_of_environment() {
  std::vector<std::string> homes;
  const char* home = std::getenv("JAVA_HOME");
  if (home != nullptr && home[0] != '\0') homes.push_back(home);
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  for (size_t at = 0; at < folders.size();) {
    size_t end = std::min(folders.find(':', at), folders.size());
    std::error_code ec;
    fs::path java = fs::canonical(folders.substr(at, end - at) + "/java", ec);
    at = end + 1;
    if (ec || access(java.c_str(), X_OK) != 0) continue;
    homes.push_back(java.parent_path().parent_path());
    break;
  }
  return homes;
}

}  // namespace classaccess
