// The dictionary tables class, field, site and gc: each row is written once, in the
// transaction of the first row that refers to it.
// Context: writer thread. Reads the agent's tables by id; touches no VM memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/store/database.h"
#include "agent/store/disassemble.h"
#include "agent/store/native_symbols.h"
#include "agent/store/writer.h"

namespace classaccess {

class Catalog {
 public:
  Catalog(Database& database, const WriterSources& sources, uint64_t started_ns)
      : database_(database), sources_(sources), started_ns_(started_ns) {}

  bool prepare();
  void finalize();

  // The class, its super classes and, once they are published, all their fields.
  bool ensure_class(uint32_t id);
  bool ensure_site(uint32_t id);
  // True if a read-modify-write at this site only stores (swap_stores.h).
  bool only_stores(uint32_t site_id);
  // Collections that started or ended since the last call. *changed is set if so.
  bool update_collections(bool* changed);
  // What was not known when a class's row was written: fields, super class.
  bool complete_classes();

 private:
  bool ensure_fields(const FieldSet* fields);
  bool ensure_field(const FieldInfo& field);
  bool write_class(const ClassInfo& info);
  std::string class_name(uint32_t id) const;

  enum SwapState : uint8_t { kUnasked = 0, kSwaps, kOnlyStores };
  enum ClassState : uint8_t { kAbsent = 0, kWritten, kWithFields };

  Database& database_;
  const WriterSources& sources_;
  uint64_t started_ns_;
  NativeSymbols symbols_;
  Disassembler disassembler_;
  std::vector<uint8_t> classes_;  // ClassState by id
  std::vector<uint8_t> swaps_;    // SwapState by site id
  std::vector<bool> fields_, sites_;
  std::vector<uint32_t> open_collections_;
  uint32_t next_collection_ = 1;
  Statement insert_class_, update_super_, insert_field_, insert_site_, insert_gc_, end_gc_;
};

}  // namespace classaccess
