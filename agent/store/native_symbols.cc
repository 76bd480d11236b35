#include "agent/store/native_symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/base/clock.h"

namespace classaccess {
namespace {

constexpr uint64_t kRereadNs = 50000000;
constexpr size_t kMaxName = 4096;
constexpr size_t kMaxAliases = 64;                // names of one address that are compared
constexpr uint64_t kMaxSymbolTable = 256u << 20;  // 11 million symbols
constexpr size_t kSymbolsAtOnce = 2048;

// Every read is checked against the file's size: a library may claim anything.
class File {
 public:
  explicit File(const std::string& path) {
    struct stat status;
    // Only regular files: opening a device or a FIFO does things.
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ >= 0 && fstat(fd_, &status) == 0) size_ = static_cast<uint64_t>(status.st_size);
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool holds(uint64_t offset, uint64_t bytes) const { return offset <= size_ && bytes <= size_ - offset; }
  bool read(uint64_t offset, void* to, size_t bytes) const {
    return holds(offset, bytes) && pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
  // The string at `offset`, up to its NUL or `limit` bytes.
  std::string text(uint64_t offset, uint64_t limit) const {
    char buffer[kMaxName];
    if (!holds(offset, 0)) return "";
    ssize_t n = pread(fd_, buffer, std::min<uint64_t>(limit, sizeof(buffer)), static_cast<off_t>(offset));
    return n > 0 ? std::string(buffer, strnlen(buffer, static_cast<size_t>(n))) : std::string();
  }

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
};

size_t underscores(const std::string& name) { return std::min(name.find_first_not_of('_'), name.size()); }

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = text != nullptr && status == 0 ? text : name;
  free(text);
  return out;
}

std::string read_all(const char* path) {
  std::string text;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[16384];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0) text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

}  // namespace

struct NativeSymbols::Mapping {
  uint64_t start = 0, end = 0, offset = 0;
  std::string path;
};

struct NativeSymbols::ElfFile {
  struct Symbol {
    uint64_t value, size;
    uint32_t name;
  };
  explicit ElfFile(const std::string& file_path) : path(file_path) { load(); }

  void load() {
    File file(path);
    Elf64_Ehdr header;
    if (!file.read(0, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64) {
      return;
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shentsize != sizeof(Elf64_Shdr)) return;
    segments.resize(header.e_phnum);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    if (!file.read(header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) segments.clear();
    if (!file.read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) return;
    for (uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
      for (const Elf64_Shdr& section : sections) {
        if (section.sh_type == type && section.sh_link < sections.size() && symbols.empty()) {
          load_symbols(file, section, sections[section.sh_link]);
        }
      }
    }
    std::sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
      return a.value != b.value ? a.value < b.value : a.size < b.size;
    });
  }

  void load_symbols(const File& file, const Elf64_Shdr& table, const Elf64_Shdr& strings) {
    if (table.sh_entsize != sizeof(Elf64_Sym) || table.sh_size > kMaxSymbolTable ||
        !file.holds(table.sh_offset, table.sh_size) || strings.sh_type != SHT_STRTAB ||
        !file.holds(strings.sh_offset, strings.sh_size)) {
      return;
    }
    names_at = strings.sh_offset;
    names_bytes = strings.sh_size;
    uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    std::vector<Elf64_Sym> piece(kSymbolsAtOnce);
    for (uint64_t first = 0; first < count; first += kSymbolsAtOnce) {
      size_t here = std::min<uint64_t>(count - first, kSymbolsAtOnce);
      if (!file.read(table.sh_offset + first * sizeof(Elf64_Sym), piece.data(), here * sizeof(Elf64_Sym))) return;
      for (size_t i = 0; i < here; ++i) {
        const Elf64_Sym& s = piece[i];
        uint8_t kind = ELF64_ST_TYPE(s.st_info);
        if ((kind == STT_FUNC || kind == STT_GNU_IFUNC) && s.st_shndx != SHN_UNDEF && s.st_name < names_bytes) {
          symbols.push_back({s.st_value, s.st_size, s.st_name});
        }
      }
    }
  }

  std::string name_at(uint64_t file_offset) const {
    for (const Elf64_Phdr& segment : segments) {
      // One comparison for both ends: no sum that may wrap.
      if (segment.p_type != PT_LOAD || file_offset - segment.p_offset >= segment.p_filesz) continue;
      uint64_t at = file_offset - segment.p_offset + segment.p_vaddr;
      auto after =
          std::partition_point(symbols.begin(), symbols.end(), [at](const Symbol& s) { return s.value <= at; });
      if (after == symbols.begin()) continue;
      // Of several names for one function the one with the fewest leading underscores.
      File file(path);
      std::string best;
      size_t aliases = 0;
      for (auto it = after; it != symbols.begin() && (it - 1)->value == (after - 1)->value; --it) {
        const Symbol& symbol = *(it - 1);
        if (symbol.size != 0 && at - symbol.value >= symbol.size) continue;
        if (++aliases > kMaxAliases) break;
        std::string name = file.text(names_at + symbol.name, names_bytes - symbol.name);
        if (best.empty() || underscores(name) < underscores(best)) best = name;
      }
      if (!best.empty()) return demangled(best);
    }
    return "";
  }

  std::string path;
  std::vector<Elf64_Phdr> segments;
  std::vector<Symbol> symbols;             // by value
  uint64_t names_at = 0, names_bytes = 0;  // of the string table, in the file
};

NativeSymbols::NativeSymbols() = default;
NativeSymbols::~NativeSymbols() = default;

NativeSymbol NativeSymbols::find(uint64_t address) {
  const Mapping* mapping = mapping_of(address);
  if (mapping == nullptr && monotonic_ns() - read_at_ns_ >= kRereadNs) {
    read_maps();
    mapping = mapping_of(address);
  }
  NativeSymbol result;
  if (mapping == nullptr || mapping->path.empty()) return result;
  size_t slash = mapping->path.rfind('/');
  result.library = slash == std::string::npos ? mapping->path : mapping->path.substr(slash + 1);
  if (mapping->path[0] == '/') result.symbol = file_of(*mapping)->name_at(address - mapping->start + mapping->offset);
  return result;
}

const NativeSymbols::Mapping* NativeSymbols::mapping_of(uint64_t address) const {
  auto after = std::partition_point(mappings_.begin(), mappings_.end(),
                                    [address](const Mapping& m) { return m.end <= address; });
  return after != mappings_.end() && after->start <= address ? &*after : nullptr;
}

// proc(5): "start-end perms offset device inode   path".
void NativeSymbols::read_maps() {
  read_at_ns_ = monotonic_ns();
  mappings_.clear();
  std::string text = read_all("/proc/self/maps");
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    Mapping mapping;
    char* next = nullptr;
    mapping.start = strtoull(line.c_str(), &next, 16);
    if (*next != '-') continue;
    mapping.end = strtoull(next + 1, &next, 16);
    if (strlen(next) < 6 || next[3] != 'x') continue;
    mapping.offset = strtoull(next + 5, &next, 16);
    for (int field = 0; field < 2; ++field) {
      while (*next == ' ') ++next;
      while (*next != ' ' && *next != '\0') ++next;
    }
    while (*next == ' ') ++next;
    mapping.path = next;
    mappings_.push_back(std::move(mapping));
  }
}

NativeSymbols::ElfFile* NativeSymbols::file_of(const Mapping& mapping) {
  for (auto& file : files_) {
    if (file->path == mapping.path) return file.get();
  }
  files_.push_back(std::make_unique<ElfFile>(mapping.path));
  return files_.back().get();
}

}  // namespace classaccess
