#include "agent/hotspot/vm_structs.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <vector>

namespace classaccess {
namespace {

template <typename T>
T read(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

std::string text_at(uint64_t address) {
  auto* text = reinterpret_cast<const char*>(read<uint64_t>(address));
  return text == nullptr ? std::string() : std::string(text);
}

// JVMFlag's type numbers (share/runtime/flags/jvmFlag.hpp, 17 to 25): bool, int, uint, intx, uintx,
// uint64_t, size_t, double, ccstr, ccstrlist. The names are not exported; load_flags checks the
// numbers against flags whose types never changed.
enum FlagType { kBool = 0, kInt, kUint, kIntx, kUintx, kUint64, kSizeT, kDouble, kText, kTextList };

// A launcher may have loaded libjvm without RTLD_GLOBAL.
const void* process_symbol(const char* name) {
  if (const void* found = dlsym(RTLD_DEFAULT, name)) return found;
  static void* const library = [] {
    std::string path;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          if (std::strstr(info->dlpi_name, "/libjvm.so") == nullptr) return 0;
          *static_cast<std::string*>(out) = info->dlpi_name;
          return 1;
        },
        &path);
    return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }();
  return library == nullptr ? nullptr : dlsym(library, name);
}

// The layout of one exported array: where it starts, its stride, and the offsets of
// an entry's members, all given by variables named after the array.
class EntryArray {
 public:
  EntryArray(const std::function<const void*(const char*)>& symbol, std::vector<std::string>* missing)
      : symbol_(symbol), missing_(missing) {}

  uint64_t variable(const std::string& name) {
    const void* at = symbol_(name.c_str());
    if (at == nullptr) {
      missing_->push_back(name);
      return 0;
    }
    return read<uint64_t>(reinterpret_cast<uint64_t>(at));
  }

 private:
  const std::function<const void*(const char*)>& symbol_;
  std::vector<std::string>* missing_;
};

}  // namespace

std::string VmStructs::load() { return load(process_symbol); }

std::string VmStructs::load(const std::function<const void*(const char*)>& symbol) {
  std::vector<std::string> missing;
  EntryArray names(symbol, &missing);
  const void* anchor = symbol("gHotSpotVMStructs");
  if (anchor == nullptr) return "this JVM does not export gHotSpotVMStructs: not HotSpot?";
  anchor_ = reinterpret_cast<uint64_t>(anchor);

  uint64_t structs = names.variable("gHotSpotVMStructs");
  uint64_t struct_stride = names.variable("gHotSpotVMStructEntryArrayStride");
  uint64_t type_name = names.variable("gHotSpotVMStructEntryTypeNameOffset");
  uint64_t field_name = names.variable("gHotSpotVMStructEntryFieldNameOffset");
  uint64_t type_string = names.variable("gHotSpotVMStructEntryTypeStringOffset");
  uint64_t is_static = names.variable("gHotSpotVMStructEntryIsStaticOffset");
  uint64_t offset_at = names.variable("gHotSpotVMStructEntryOffsetOffset");
  uint64_t address_at = names.variable("gHotSpotVMStructEntryAddressOffset");
  uint64_t types = names.variable("gHotSpotVMTypes");
  uint64_t types_stride = names.variable("gHotSpotVMTypeEntryArrayStride");
  uint64_t types_name = names.variable("gHotSpotVMTypeEntryTypeNameOffset");
  uint64_t types_size = names.variable("gHotSpotVMTypeEntrySizeOffset");
  uint64_t ints = names.variable("gHotSpotVMIntConstants");
  uint64_t ints_stride = names.variable("gHotSpotVMIntConstantEntryArrayStride");
  uint64_t ints_name = names.variable("gHotSpotVMIntConstantEntryNameOffset");
  uint64_t ints_value = names.variable("gHotSpotVMIntConstantEntryValueOffset");
  uint64_t longs = names.variable("gHotSpotVMLongConstants");
  uint64_t longs_stride = names.variable("gHotSpotVMLongConstantEntryArrayStride");
  uint64_t longs_name = names.variable("gHotSpotVMLongConstantEntryNameOffset");
  uint64_t longs_value = names.variable("gHotSpotVMLongConstantEntryValueOffset");
  if (!missing.empty()) {
    std::string message = "this JVM does not export";
    for (const std::string& name : missing) message += " " + name;
    return message;
  }
  if (structs == 0 || types == 0 || struct_stride == 0 || types_stride == 0) {
    return "the vmStructs tables of this JVM are empty";
  }

  for (uint64_t e = structs; read<uint64_t>(e + type_name) != 0; e += struct_stride) {
    Field field;
    field.type = text_at(e + type_string);
    field.is_static = read<int32_t>(e + is_static) != 0;
    field.offset = read<uint64_t>(e + offset_at);
    field.address = read<uint64_t>(e + address_at);
    fields_.emplace(text_at(e + type_name) + "::" + text_at(e + field_name), field);
  }
  for (uint64_t e = types; read<uint64_t>(e + types_name) != 0; e += types_stride) {
    types_.emplace(text_at(e + types_name), read<uint64_t>(e + types_size));
  }
  for (uint64_t e = ints; ints != 0 && read<uint64_t>(e + ints_name) != 0; e += ints_stride) {
    constants_.emplace(text_at(e + ints_name), read<int32_t>(e + ints_value));
  }
  for (uint64_t e = longs; longs != 0 && read<uint64_t>(e + longs_name) != 0; e += longs_stride) {
    constants_.emplace(text_at(e + longs_name), read<int64_t>(e + longs_value));
  }
  return load_flags();
}

std::string VmStructs::load_flags() {
  auto flags = address("JVMFlag", "flags"), count = address("JVMFlag", "numFlags");
  auto name = offset("JVMFlag", "_name"), value = offset("JVMFlag", "_addr"), type = offset("JVMFlag", "_type");
  auto size = type_size("JVMFlag");
  if (!flags || !count || !name || !value || !type || !size) {
    return "the flag table of this JVM (JVMFlag in vmStructs) is not understood";
  }
  uint64_t entry = read<uint64_t>(*flags);
  for (uint64_t n = read<uint64_t>(*count); entry != 0 && n > 0; --n, entry += *size) {
    Flag flag;
    flag.address = read<uint64_t>(entry + *value);
    flag.type = read<int32_t>(entry + *type);
    if (read<uint64_t>(entry + *name) != 0 && flag.address != 0) flags_.emplace(text_at(entry + *name), flag);
  }
  auto has_type = [&](const char* flag, int expected) {
    auto at = flags_.find(flag);
    return at != flags_.end() && at->second.type == expected;
  };
  if (!has_type("UseSerialGC", kBool) || !has_type("ParallelGCThreads", kUint) || !has_type("MaxHeapSize", kSizeT)) {
    return "the flag types of this JVM (JVMFlag::_type) are not understood";
  }
  return "";
}

const VmStructs::Field* VmStructs::field(const std::string& type, const std::string& name) const {
  auto at = fields_.find(type + "::" + name);
  return at == fields_.end() ? nullptr : &at->second;
}

std::optional<uint64_t> VmStructs::offset(const std::string& type, const std::string& name) const {
  const Field* found = field(type, name);
  if (found == nullptr || found->is_static) return std::nullopt;
  return found->offset;
}

std::optional<uint64_t> VmStructs::address(const std::string& type, const std::string& name) const {
  const Field* found = field(type, name);
  if (found == nullptr || !found->is_static || found->address == 0) return std::nullopt;
  return found->address;
}

std::optional<uint64_t> VmStructs::type_size(const std::string& type) const {
  auto at = types_.find(type);
  if (at == types_.end()) return std::nullopt;
  return at->second;
}

std::optional<int64_t> VmStructs::constant(const std::string& name) const {
  auto at = constants_.find(name);
  if (at == constants_.end()) return std::nullopt;
  return at->second;
}

std::optional<uint64_t> VmStructs::flag_u64(const std::string& name) const {
  auto at = flags_.find(name);
  if (at == flags_.end()) return std::nullopt;
  const Flag& flag = at->second;
  switch (flag.type) {
    case kBool: return read<uint8_t>(flag.address);
    case kInt: return static_cast<uint64_t>(static_cast<int64_t>(read<int32_t>(flag.address)));
    case kUint: return read<uint32_t>(flag.address);
    case kIntx:
    case kUintx:
    case kUint64:
    case kSizeT: return read<uint64_t>(flag.address);
    default: return std::nullopt;
  }
}

bool VmStructs::flag_bool(const std::string& name) const {
  auto at = flags_.find(name);
  return at != flags_.end() && at->second.type == kBool && read<uint8_t>(at->second.address) != 0;
}

std::string VmStructs::flag_text(const std::string& name) const {
  auto at = flags_.find(name);
  if (at == flags_.end() || (at->second.type != kText && at->second.type != kTextList)) return "";
  return text_at(at->second.address);
}

}  // namespace classaccess
