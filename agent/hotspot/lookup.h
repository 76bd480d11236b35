// Look-ups in vmStructs that remember what was not found, so that one message lists it all.
// Context: start-up only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "agent/hotspot/vm_structs.h"

namespace classaccess {

class Lookup {
 public:
  explicit Lookup(const VmStructs& vm) : vm_(vm) {}

  using Name = std::pair<const char*, const char*>;  // type, field

  // The first of the alternatives that exists; else the first one is reported missing and 0 returned.
  uint32_t offset(std::initializer_list<Name> names);
  uint64_t address(std::initializer_list<Name> names);
  uint32_t size(const char* type);
  int64_t constant(std::initializer_list<const char*> names);
  // A constant that our code has built in: missing or different is an error.
  void expect(const char* name, int64_t value);
  uint64_t flag(const char* name);

  // Empty, or the message.
  std::string result() const;

 private:
  uint32_t missed(const Name& name);

  const VmStructs& vm_;
  std::string missing_;
};

}  // namespace classaccess
