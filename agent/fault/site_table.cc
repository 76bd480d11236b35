#include "agent/fault/site_table.h"

#include <string.h>

#include "agent/base/counters.h"
#include "agent/base/reserve.h"

namespace classaccess {
namespace {

uint64_t mix(uint64_t key) {
  key ^= key >> 31;
  key *= 0x9e3779b97f4a7c15ull;
  return key ^ (key >> 29);
}

}  // namespace

bool SiteTable::create() {
  slots_ = reserve_array<std::atomic<uint32_t>>(kSlots);
  return slots_ != nullptr && rows_.create(kSlots / 2);
}

uint32_t SiteTable::find_or_add(uint64_t pc, const CodeSite& code, const uint8_t* bytes, uint8_t length,
                                uint64_t caller_pc) {
  uint32_t method_id = code.method != nullptr ? code.method->id : 0;
  uint64_t hash = mix(pc ^ (caller_pc << 16) ^ (static_cast<uint64_t>(method_id) << 40) ^
                      (static_cast<uint64_t>(static_cast<uint32_t>(code.bci)) << 20) ^
                      (static_cast<uint64_t>(static_cast<uint32_t>(code.compile_id)) << 32));
  auto same = [&](const SiteInfo& row) {
    return row.pc == pc && row.caller_pc == caller_pc && row.method_id == method_id && row.bci == code.bci &&
           row.compile_id == code.compile_id && row.kind == code.kind && row.length == length &&
           memcmp(row.bytes, bytes, length) == 0;
  };
  uint32_t mine = 0;
  for (uint32_t probe = 0; probe < kSlots; ++probe) {
    std::atomic<uint32_t>& slot = slots_[(hash + probe) % kSlots];
    uint32_t id = slot.load(std::memory_order_acquire);
    if (id == 0) {
      if (mine == 0) {
        mine = rows_.claim();
        if (mine == 0) {
          count(g_counters.table_full);
          return 0;
        }
        SiteInfo& row = rows_.row(mine);
        row.id = mine;
        row.kind = code.kind;
        row.length = length;
        row.bytecode = code.bytecode;
        memcpy(row.bytes, bytes, length);
        row.pc = pc;
        row.caller_pc = caller_pc;
        row.method_id = method_id;
        row.bci = code.bci;
        row.compile_id = code.compile_id;
        row.stub_name = code.stub_name;
        row.ready.store(true, std::memory_order_release);
      }
      if (slot.compare_exchange_strong(id, mine, std::memory_order_acq_rel)) return mine;
      // Lost the race: `id` is another's; an unused row stays behind.
    }
    if (same(rows_.row(id))) return id;
  }
  count(g_counters.table_full);
  return 0;
}

}  // namespace classaccess
