// The constant pool of a class file (JVM specification 4.4): what it says, and entries added behind it.
// Context: as class_bytes.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/calls/java/class_bytes.h"

namespace classaccess {

class ConstantPool {
 public:
  // Reads it from behind the class file's version. False: malformed. `reader` keeps its bytes.
  bool read(ByteReader* reader);

  // Empty if the entry is of another kind.
  std::string_view utf8(uint16_t index) const;
  std::string_view class_name(uint16_t index) const;
  // Name of the method that a Methodref or InterfaceMethodref names.
  std::string_view method_name(uint16_t index) const;

  // Adds what is not there yet; 0: the pool is full (full() is true from then on).
  uint16_t add_utf8(std::string_view text);
  uint16_t add_class(std::string_view name);
  uint16_t add_integer(int32_t value);
  uint16_t add_method(std::string_view class_name, std::string_view name, std::string_view descriptor);
  bool full() const { return full_; }

  // The count, all that was read, and what was added.
  void write(ByteWriter* out) const;

 private:
  enum Tag : uint8_t {
    kUtf8 = 1,
    kInteger = 3,
    kFloat = 4,
    kLong = 5,
    kDouble = 6,
    kClass = 7,
    kString = 8,
    kField = 9,
    kMethod = 10,
    kInterfaceMethod = 11,
    kNameAndType = 12,
    kMethodHandle = 15,
    kMethodType = 16,
    kDynamic = 17,
    kInvokeDynamic = 18,
    kModule = 19,
    kPackage = 20
  };
  struct Entry {
    uint8_t tag = 0;
    Bytes body;
  };
  uint16_t add(const std::string& entry);
  uint16_t number_at(uint16_t index, uint8_t tag, size_t at) const;

  std::vector<Entry> entries_;  // by index; 0 unused
  Bytes original_;
  uint32_t count_ = 0;
  ByteWriter added_;
  std::map<std::string, uint16_t> index_of_;  // of those added
  bool full_ = false;
};

}  // namespace classaccess
