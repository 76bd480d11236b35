// What an access touched: one record -> one row per field, element run, header word or
// gap it covers (interface.md, table `access`).
// Context: writer thread. Pure functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/heap/class_table.h"
#include "agent/heap/vm_layout.h"
#include "classaccess/record.h"

namespace classaccess {

struct AccessRow {
  uint32_t class_id = 0;  // 0: not resolved
  uint32_t field_id = 0;  // 0: none
  Part part = Part::kUnknown;
  uint64_t address = 0;  // first byte of this row's piece
  uint32_t size = 0;
};

// Klass::_layout_helper of an array (share/oops/klass.hpp): tag in the top two bits,
// header bytes in bits 16-23, log2 of the element size in bits 0-7. Negative for arrays.
inline bool is_array_layout(int32_t layout_helper) { return layout_helper < 0; }
inline uint32_t array_header_bytes(int32_t layout_helper) { return static_cast<uint32_t>(layout_helper) >> 16 & 0xff; }
inline uint32_t array_log2_element(int32_t layout_helper) { return static_cast<uint32_t>(layout_helper) & 0x3f; }

// Appends the rows of `record` (kAccess or kKlassStore) to *out; at least one.
// `klass`: the row of record.class_id, null if that is 0. `fields`: its published field
// set or null. `bytecode`: the site's bytecode, 0 if none.
//
//  - no class: one row, part kUnknown.
//  - the store of the Klass word, a store at the bytecode that creates the object
//    (new, newarray, anewarray, multianewarray), a store to the array length: kInit.
//  - kFlagMirror: static fields by their offset in the mirror. Fields not published yet:
//    kInit, since the class is then still being linked.
//  - instance stores without published fields: kInit; loads: kField with field_id 0.
//  - bytes of no field, element or header word: kPadding, one row per gap.
//  - bytes outside [object, object + extent): kUnknown with class_id 0; a load's behind the object, which vector code
//    reads without using them: kPadding.
void classify(const AccessRecord& record, const ClassInfo* klass, const FieldSet* fields, uint8_t bytecode,
              const VmLayout& layout, std::vector<AccessRow>* out);

}  // namespace classaccess
