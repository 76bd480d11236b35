// The tables HotSpot exports about itself: gHotSpotVMStructs, gHotSpotVMTypes,
// gHotSpotVMIntConstants, gHotSpotVMLongConstants (share/runtime/vmStructs.hpp).
// Read once; the look-ups answer with what this JVM says and never with a guess.
// Context: Agent_OnLoad/OnAttach and VMInit. Not for signal handlers (allocates).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

namespace classaccess {

class VmStructs {
 public:
  struct Field {
    std::string type;  // as the VM spells it, "" if not given
    bool is_static = false;
    uint64_t offset = 0;   // bytes inside the object; not static
    uint64_t address = 0;  // of the variable; static
  };

  // Reads the tables of the JVM in this process. Empty string, or why it cannot.
  std::string load();

  // The same with another source of symbols (tests): `symbol` returns the address of
  // an exported variable or nullptr.
  std::string load(const std::function<const void*(const char*)>& symbol);

  // Names as in vmStructs: field("Klass", "_name").
  const Field* field(const std::string& type, const std::string& name) const;
  std::optional<uint64_t> offset(const std::string& type, const std::string& name) const;   // not static
  std::optional<uint64_t> address(const std::string& type, const std::string& name) const;  // static
  std::optional<uint64_t> type_size(const std::string& type) const;
  // An int or long constant.
  std::optional<int64_t> constant(const std::string& name) const;

  // A VM flag (share/runtime/flags/jvmFlag.hpp), read at its own width and sign-extended for
  // int and intx. Empty if there is no such flag or it is not a number. Usable from
  // Agent_OnLoad on; ergonomics may still change a flag until VMInit.
  std::optional<uint64_t> flag_u64(const std::string& name) const;
  // The same for flags of type bool; an absent flag is false.
  bool flag_bool(const std::string& name) const;

  // A flag of type text, with the same restriction; an absent or unset one is "".
  std::string flag_text(const std::string& name) const;

  // An address inside libjvm: that of the table pointer.
  uint64_t anchor() const { return anchor_; }

 private:
  std::string load_flags();

  struct Flag {
    uint64_t address = 0;
    int type = 0;
  };
  std::unordered_map<std::string, Field> fields_;  // "Type::name"
  std::unordered_map<std::string, uint64_t> types_;
  std::unordered_map<std::string, int64_t> constants_;
  mutable std::unordered_map<std::string, Flag> flags_;
  uint64_t anchor_ = 0;
};

}  // namespace classaccess
