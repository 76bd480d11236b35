// The reader of vmStructs on fabricated tables, with strides and offsets unlike HotSpot's.
#include "agent/hotspot/vm_structs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "agent/hotspot/layout_probe.h"

namespace classaccess {
namespace {

struct StructEntry {
  int32_t is_static;
  const char* field;
  const char* type;
  void* address;
  uint64_t offset;
  const char* type_string;
};
struct TypeEntry {
  uint64_t size;
  const char* name;
};
struct ConstantEntry {
  uint64_t value;
  const char* name;
};
struct Flag {
  int32_t type;
  void* address;
  const char* name;
};

class Tables {
 public:
  Tables() {
    flags_[0] = {0, &use_serial_, "UseSerialGC"};
    flags_[1] = {2, &threads_, "ParallelGCThreads"};
    flags_[2] = {6, &heap_, "MaxHeapSize"};
    flags_[3] = {1, &alignment_[0], "ObjectAlignmentInBytes"};
    structs_[0] = {1, "flags", "JVMFlag", &flags_pointer_, 0, "JVMFlag*"};
    structs_[1] = {1, "numFlags", "JVMFlag", &flag_count_, 0, "size_t"};
    structs_[2] = {0, "_type", "JVMFlag", nullptr, offsetof(Flag, type), "int"};
    structs_[3] = {0, "_addr", "JVMFlag", nullptr, offsetof(Flag, address), nullptr};
    structs_[4] = {0, "_name", "JVMFlag", nullptr, offsetof(Flag, name), "const char*"};
    structs_[5] = {0, "_name", "Klass", nullptr, 24, "Symbol*"};
    structs_[6] = {1, "_vm_major_version", "Abstract_VM_Version", &major_, 0, "int"};
    types_[0] = {sizeof(Flag), "JVMFlag"};
    types_[1] = {88, "Method"};
    ints_[0] = {static_cast<uint32_t>(-1), "InvocationEntryBci"};
    longs_[0] = {uint64_t{1} << 40, "markWord::big"};
    variable("gHotSpotVMStructs", structs_);
    variable("gHotSpotVMTypes", types_);
    variable("gHotSpotVMIntConstants", ints_);
    variable("gHotSpotVMLongConstants", longs_);
    variable("gHotSpotVMStructEntryArrayStride", sizeof(StructEntry));
    variable("gHotSpotVMStructEntryTypeNameOffset", offsetof(StructEntry, type));
    variable("gHotSpotVMStructEntryFieldNameOffset", offsetof(StructEntry, field));
    variable("gHotSpotVMStructEntryTypeStringOffset", offsetof(StructEntry, type_string));
    variable("gHotSpotVMStructEntryIsStaticOffset", offsetof(StructEntry, is_static));
    variable("gHotSpotVMStructEntryOffsetOffset", offsetof(StructEntry, offset));
    variable("gHotSpotVMStructEntryAddressOffset", offsetof(StructEntry, address));
    variable("gHotSpotVMTypeEntryArrayStride", sizeof(TypeEntry));
    variable("gHotSpotVMTypeEntryTypeNameOffset", offsetof(TypeEntry, name));
    variable("gHotSpotVMTypeEntrySizeOffset", offsetof(TypeEntry, size));
    for (const char* kind : {"Int", "Long"}) {
      std::string prefix = std::string("gHotSpotVM") + kind + "ConstantEntry";
      variable(prefix + "ArrayStride", sizeof(ConstantEntry));
      variable(prefix + "NameOffset", offsetof(ConstantEntry, name));
      variable(prefix + "ValueOffset", offsetof(ConstantEntry, value));
    }
  }
  std::string load(VmStructs* vm) {
    return vm->load([this](const char* name) -> const void* {
      auto at = variables_.find(name);
      return at == variables_.end() ? nullptr : &at->second;
    });
  }
  void variable(const std::string& name, const void* value) { variables_[name] = reinterpret_cast<uint64_t>(value); }
  void variable(const std::string& name, uint64_t value) { variables_[name] = value; }

  std::map<std::string, uint64_t> variables_;
  StructEntry structs_[8] = {};
  TypeEntry types_[3] = {};
  ConstantEntry ints_[2] = {}, longs_[2] = {};
  Flag flags_[4] = {};
  Flag* flags_pointer_ = flags_;
  uint64_t flag_count_ = 4;
  bool use_serial_ = true;
  uint32_t threads_ = 3;
  uint64_t heap_ = uint64_t{5} << 32;
  uint32_t alignment_[2] = {8, 0xdeadbeef};  // an int flag: its neighbour must not be read
  int32_t major_ = 16;
};

TEST(VmStructs, ReadsTheTables) {
  Tables tables;
  VmStructs vm;
  ASSERT_EQ("", tables.load(&vm));
  EXPECT_EQ(24u, vm.offset("Klass", "_name"));
  EXPECT_EQ("Symbol*", vm.field("Klass", "_name")->type);
  EXPECT_EQ("", vm.field("JVMFlag", "_addr")->type);
  EXPECT_FALSE(vm.address("Klass", "_name").has_value()) << "not static";
  EXPECT_FALSE(vm.offset("JVMFlag", "flags").has_value()) << "static";
  EXPECT_EQ(reinterpret_cast<uint64_t>(&tables.flag_count_), vm.address("JVMFlag", "numFlags"));
  EXPECT_FALSE(vm.offset("Klass", "_super").has_value());
  EXPECT_EQ(88u, vm.type_size("Method"));
  EXPECT_FALSE(vm.type_size("Klass").has_value());
  EXPECT_EQ(-1, vm.constant("InvocationEntryBci"));
  EXPECT_EQ(int64_t{1} << 40, vm.constant("markWord::big"));
  EXPECT_FALSE(vm.constant("nothing").has_value());
}

TEST(VmStructs, ReadsFlagsAtTheirWidth) {
  Tables tables;
  VmStructs vm;
  ASSERT_EQ("", tables.load(&vm));
  EXPECT_TRUE(vm.flag_bool("UseSerialGC"));
  EXPECT_FALSE(vm.flag_bool("UseZGC"));
  EXPECT_EQ(3u, vm.flag_u64("ParallelGCThreads"));
  EXPECT_EQ(uint64_t{5} << 32, vm.flag_u64("MaxHeapSize"));
  EXPECT_EQ(8u, vm.flag_u64("ObjectAlignmentInBytes"));
  EXPECT_FALSE(vm.flag_u64("NoSuchFlag").has_value());
  EXPECT_EQ(uint64_t{5} << 32, max_heap_size(vm));
}

TEST(VmStructs, SaysWhatIsMissing) {
  VmStructs none;
  EXPECT_EQ("this JVM does not export gHotSpotVMStructs: not HotSpot?", none.load([](const char*) { return nullptr; }));
  Tables tables;
  tables.variables_.erase("gHotSpotVMTypeEntrySizeOffset");
  tables.variables_.erase("gHotSpotVMLongConstants");
  VmStructs vm;
  EXPECT_EQ("this JVM does not export gHotSpotVMTypeEntrySizeOffset gHotSpotVMLongConstants", tables.load(&vm));
}

TEST(VmStructs, RefusesUnknownFlagTypes) {
  Tables tables;
  tables.flags_[2].type = 9;
  VmStructs vm;
  EXPECT_EQ("the flag types of this JVM (JVMFlag::_type) are not understood", tables.load(&vm));
}

TEST(LayoutProbe, NamesEverythingThatIsMissing) {
  Tables tables;
  VmStructs vm;
  ASSERT_EQ("", tables.load(&vm));
  VmLayout layout;
  EXPECT_EQ("JDK 16 is not supported: 17 or newer", probe_layout(&layout, vm));
  tables.major_ = 17;
  std::string reason = probe_layout(&layout, vm);
  for (const char* name : {"Klass::_layout_helper", "Symbol::_body", "sizeof(ConstMethod)", "markWord::hash_shift",
                           "nmethod::_compile_id", "-XX:UseCompressedOops", "PcDesc::_pc_offset"}) {
    EXPECT_NE(std::string::npos, reason.find(name)) << name << " in: " << reason;
  }
  EXPECT_EQ(std::string::npos, reason.find("Klass::_name")) << "not missing";
  EXPECT_EQ(std::string::npos, reason.find(" sizeof(Method)")) << "not missing";
  EXPECT_FALSE(complete_layout(&layout, vm).empty());
}

}  // namespace
}  // namespace classaccess
