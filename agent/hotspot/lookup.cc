#include "agent/hotspot/lookup.h"

namespace classaccess {

uint32_t Lookup::offset(std::initializer_list<Name> names) {
  for (const Name& name : names) {
    if (auto found = vm_.offset(name.first, name.second)) return static_cast<uint32_t>(*found);
  }
  return missed(*names.begin());
}

uint64_t Lookup::address(std::initializer_list<Name> names) {
  for (const Name& name : names) {
    if (auto found = vm_.address(name.first, name.second)) return *found;
  }
  return missed(*names.begin());
}

uint32_t Lookup::size(const char* type) {
  if (auto found = vm_.type_size(type)) return static_cast<uint32_t>(*found);
  missing_ += std::string(" sizeof(") + type + ")";
  return 0;
}

int64_t Lookup::constant(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto found = vm_.constant(name)) return *found;
  }
  missing_ += std::string(" ") + *names.begin();
  return 0;
}

void Lookup::expect(const char* name, int64_t value) {
  auto found = vm_.constant(name);
  if (!found) {
    missing_ += std::string(" ") + name;
  } else if (*found != value) {
    missing_ += std::string(" ") + name + "=" + std::to_string(*found);
  }
}

uint64_t Lookup::flag(const char* name) {
  if (auto found = vm_.flag_u64(name)) return *found;
  missing_ += std::string(" -XX:") + name;
  return 0;
}

std::string Lookup::result() const {
  return missing_.empty() ? "" : "the layout of this JVM is not understood; missing or different:" + missing_;
}

uint32_t Lookup::missed(const Name& name) {
  missing_ += std::string(" ") + name.first + "::" + name.second;
  return 0;
}

}  // namespace classaccess
