// An ELF file of this machine, read for its tables, and the separate debug file that belongs to it.
// Context: no signal handler.
#pragma once

#include <elf.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

namespace classaccess {

// Nothing the file says is believed before it is compared with its size.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path);
  ~ElfFile() {
    if (fd_ >= 0) close(fd_);
  }
  ElfFile(const ElfFile&) = delete;

  // It is one, and has section headers.
  bool is_good() const { return !sections_.empty(); }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  template <typename T>
  bool read(uint64_t at, size_t count, std::vector<T>* out) const {
    if (at > size_ || count > (size_ - at) / sizeof(T)) return false;
    out->resize(count);
    return pread(fd_, out->data(), count * sizeof(T), static_cast<off_t>(at)) ==
           static_cast<ssize_t>(count * sizeof(T));
  }

  // In hexadecimal digits; "": it has none.
  std::string build_id() const;
  // What .gnu_debuglink says: file name and checksum of its debug file.
  bool debug_link(std::string* name, uint32_t* checksum) const;
  // Of all its bytes, as .gnu_debuglink has it.
  uint32_t checksum() const;

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
  std::vector<Elf64_Shdr> sections_;
};

// The installed debug file of `file` (at `path`): the one with its build id, or with the checksum that it names; "":
// there is none. Searched where gdb does: `root`/.build-id, beside the file, its folder .debug, and the file's folder
// below `root`.
std::string separate_debug_file(const ElfFile& file, const std::string& path,
                                const std::string& root = "/usr/lib/debug");

}  // namespace classaccess
