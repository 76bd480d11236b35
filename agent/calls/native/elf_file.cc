#include "agent/calls/native/elf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

namespace classaccess {
namespace {

// Of CRC-32, reflected, as zlib and GNU binutils compute it.
constexpr std::array<uint32_t, 256> checksum_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xedb88320u : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kChecksumTable = checksum_table();

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

ElfFile::ElfFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status;
  if (fd_ < 0 || fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return;
  size_ = static_cast<uint64_t>(status.st_size);
  std::vector<Elf64_Ehdr> header;
  if (!read(0, 1, &header) || memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_machine != EM_X86_64 ||
      header[0].e_shentsize != sizeof(Elf64_Shdr) || !read(header[0].e_shoff, header[0].e_shnum, &sections_)) {
    sections_.clear();
  }
}

std::string ElfFile::build_id() const {
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_NOTE) continue;
    std::vector<uint8_t> note;
    constexpr size_t kMost = 4096, kHead = 16;
    if (section.sh_size > kMost || !read(section.sh_offset, section.sh_size, &note)) continue;
    Elf64_Nhdr head;
    if (note.size() < kHead) continue;
    memcpy(&head, note.data(), sizeof(head));
    if (head.n_type != NT_GNU_BUILD_ID || head.n_namesz != 4 || head.n_descsz > note.size() - kHead ||
        head.n_descsz < 2) {
      continue;
    }
    std::string hex;
    for (size_t i = 0; i < head.n_descsz; ++i) {
      char two[3];
      snprintf(two, sizeof(two), "%02x", note[kHead + i]);
      hex += two;
    }
    return hex;
  }
  return "";
}

bool ElfFile::debug_link(std::string* name, uint32_t* checksum) const {
  std::vector<Elf64_Ehdr> header;
  std::vector<char> names;
  if (!is_good() || !read(0, 1, &header) || header[0].e_shstrndx >= sections_.size()) return false;
  const Elf64_Shdr& strings = sections_[header[0].e_shstrndx];
  if (!read(strings.sh_offset, strings.sh_size, &names) || names.empty() || names.back() != 0) return false;
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_name >= names.size() || strcmp(&names[section.sh_name], ".gnu_debuglink") != 0) continue;
    std::vector<char> text;
    constexpr size_t kMost = 4096;
    if (section.sh_size > kMost || !read(section.sh_offset, section.sh_size, &text)) return false;
    const size_t length = strnlen(text.data(), text.size()), at = (length + 4) / 4 * 4;
    if (length == 0 || at + 4 > text.size()) return false;
    *name = std::string(text.data(), length);
    memcpy(checksum, text.data() + at, 4);
    return name->find('/') == std::string::npos;
  }
  return false;
}

uint32_t ElfFile::checksum() const {
  uint32_t sum = ~0u;
  std::vector<uint8_t> part;
  constexpr uint64_t kPart = 1 << 20;
  for (uint64_t at = 0; at < size_; at += kPart) {
    if (!read(at, std::min(kPart, size_ - at), &part)) return 0;
    for (uint8_t byte : part) sum = sum >> 8 ^ kChecksumTable[(sum ^ byte) & 0xff];
  }
  return ~sum;
}

std::string separate_debug_file(const ElfFile& file, const std::string& path, const std::string& root) {
  const std::string id = file.build_id();
  // A debug file of another build would give other addresses.
  auto is_of_this_build = [&](const std::string& candidate) {
    const ElfFile debug(candidate);
    return debug.is_good() && !id.empty() && debug.build_id() == id;
  };
  if (id.size() > 2) {
    const std::string candidate = root + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
    if (is_of_this_build(candidate)) return candidate;
  }
  std::error_code ec;
  const std::string real = std::filesystem::canonical(path, ec).string();
  std::string name;
  uint32_t checksum = 0;
  const bool has_link = file.debug_link(&name, &checksum);
  for (const std::string& from : {path, real}) {
    if (from.empty()) continue;
    for (const std::string& candidate : {root + from + ".debug", root + from}) {
      if (is_of_this_build(candidate)) return candidate;
    }
    if (!has_link) continue;
    const std::string folder = folder_of(from);
    for (const std::string& place : {folder, folder + "/.debug", root + folder}) {
      const std::string candidate = place + "/" + name;
      if (std::filesystem::equivalent(candidate, from, ec)) continue;
      if (is_of_this_build(candidate)) return candidate;
      const ElfFile debug(candidate);
      if (debug.is_good() && debug.checksum() == checksum) return candidate;
    }
  }
  return "";
}

}  // namespace classaccess
