// A code page with room for probes on both sides, memory mapped twice, and a buffer for
// the records: what probes need, without a VM.
// Context: test process, one thread unless a test says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/probe/probe_sites.h"

namespace classaccess {

class ProbeWorld {
 public:
  // Made once each: the rooms are large. Compiled: code of the code cache; library: code that is
  // patched as text, whose probes ask for the thread's window. They share the data.
  static ProbeWorld& get(ProbeKind kind = ProbeKind::kCompiled);

  static constexpr uint64_t kDataBytes = 64 << 10;
  static constexpr uint64_t kCodeBytes = 1 << 20;
  uint64_t code = 0;
  uint64_t data = 0;  // the "heap"
  uint64_t twin = 0;  // the same memory
  uint64_t buffer = 0;

  // Writes `bytes` at offset `at` of the code, the rest of it RET.
  uint64_t put(const std::vector<uint8_t>& bytes, uint64_t at = 0);
  LayResult lay(uint64_t pc, bool patched = true);
  // Calls the code with rdi, rsi, rdx, rcx; returns rax.
  static uint64_t call(uint64_t pc, uint64_t rdi, uint64_t rsi, uint64_t rdx, uint64_t rcx);
  // Records since the last call, and the cursor back at the start.
  struct Seen {
    uint64_t pc, address, base;
  };
  std::vector<Seen> take_records();
  std::vector<uint8_t> bytes(uint64_t pc, size_t count) const;

  ProbeSites* sites = nullptr;

 private:
  explicit ProbeWorld(ProbeKind kind);
  ProbeKind kind_;
};

}  // namespace classaccess
