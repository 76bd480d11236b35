// One run of bytes of one instruction, on its way to a record. Private to access_path.cc and
// access_record.cc.
// Context: signal handler.
#pragma once

#include "agent/fault/access_path.h"

namespace classaccess {

struct AccessPath::Access {
  CachedInstruction* row = nullptr;
  const CpuState* cpu = nullptr;
  uint64_t t_ns = 0;
  uint64_t address = 0;
  uint32_t size = 0;
  Op op = Op::kLoad;
  RecordKind kind = RecordKind::kAccess;
  Resolution resolution = {};
  bool has_value = false;
  uint64_t value = 0;
  uint32_t site_id = 0;  // 0: not looked up yet
  bool probed = false;
  bool left = false;  // not known yet: UnknownObject::kLeave
};

}  // namespace classaccess
