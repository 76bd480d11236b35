// Big-endian bytes of a class file: a reader that cannot leave its bounds, and a writer.
// Context: class-load hook of JVMTI, on any Java thread; never a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace classaccess {

using Bytes = std::span<const uint8_t>;

// After a read past the end ok() is false and every value 0.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  uint8_t u1() { return static_cast<uint8_t>(number(1)); }
  uint16_t u2() { return static_cast<uint16_t>(number(2)); }
  uint32_t u4() { return static_cast<uint32_t>(number(4)); }
  int32_t s4() { return static_cast<int32_t>(number(4)); }
  Bytes take(size_t count) {
    if (!has(count)) return {};
    Bytes piece = bytes_.subspan(at_, count);
    at_ += count;
    return piece;
  }
  void skip(size_t count) { (void)take(count); }

 private:
  bool has(size_t count) {
    if (count > left()) ok_ = false;
    return ok_;
  }
  uint64_t number(size_t count) {
    if (!has(count)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | bytes_[at_++];
    return value;
  }

  Bytes bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

class ByteWriter {
 public:
  void u1(uint64_t value) { bytes_.push_back(static_cast<uint8_t>(value)); }
  void u2(uint64_t value) {
    u1(value >> 8);
    u1(value);
  }
  void u4(uint64_t value) {
    u2(value >> 16);
    u2(value);
  }
  void put(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void put(std::string_view text) { bytes_.insert(bytes_.end(), text.begin(), text.end()); }
  // Four bytes for a length that is filled in by close_length: of what was written since.
  size_t open_length() {
    u4(0);
    return bytes_.size();
  }
  void close_length(size_t start) {
    const uint64_t length = bytes_.size() - start;
    for (size_t i = 0; i < 4; ++i) bytes_[start - 4 + i] = static_cast<uint8_t>(length >> (24 - 8 * i));
  }
  void set_u2(size_t at, uint64_t value) {
    bytes_[at] = static_cast<uint8_t>(value >> 8);
    bytes_[at + 1] = static_cast<uint8_t>(value);
  }
  size_t size() const { return bytes_.size(); }
  Bytes bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace classaccess
