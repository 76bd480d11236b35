#include "agent/fault/access_path.h"

#include <string.h>

#include "agent/base/counters.h"
#include "agent/fault/access.h"
#include "agent/fault/gs_base.h"
#include "agent/fault/page_windows.h"
#include "agent/fault/probed_access.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/twin_view.h"
#include "agent/x86/emulate.h"
#include "agent/x86/operand.h"
#include "agent/x86/string_ops.h"

namespace classaccess {

Verdict AccessPath::perform_plain(ThreadState* thread, CpuState* cpu, CachedInstruction* row, const Fault& fault) {
  const Instruction& instruction = row->instruction;
  const CpuState before = *cpu;
  TouchedRuns touched;
  find_touched(instruction, before, &touched);
  bool covers_fault = false, all_armed = g_armed.armed(fault.address);
  for (uint32_t i = 0; i < touched.count; ++i) {
    const TouchedRun& run = touched.runs[i];
    covers_fault |= fault.address - run.address < run.size;
    all_armed &= g_armed.armed(run.address, run.size);
  }
  // Masked-off bytes may fault, and CLFLUSH touches nothing; otherwise the decoder and
  // the CPU disagree: believe the CPU, and say so.
  if (!covers_fault && instruction.touches_memory && instruction.touch == Touch::kWhole) {
    count(g_counters.decode_failures);
    record_unknown(thread, before, row, fault);
    return Verdict::kStep;
  }

  Verdict verdict = Verdict::kStep;
  uint64_t stub = 0;
  if (all_armed && instruction.execute == Execute::kEmulate && touched.count == 1) {
    verdict = Verdict::kEmulated;
  } else if (all_armed && instruction.execute == Execute::kDisplace && g_twin.created() &&
             gs_base_ready(g_twin.distance())) {
    stub = instructions->displaced_copy(row);
    if (stub != 0) verdict = Verdict::kDisplaced;
  }

  if (verdict == Verdict::kEmulated) {
    Access access{row, &before, fault.t_ns, touched.runs[0].address, touched.runs[0].size, instruction.op};
    if (thread != nullptr) resolve(thread, before, instruction, &access);
    emulate(instruction, cpu, g_twin.at(access.address), &access.value);
    HandlerWindows::shut();
    if (thread == nullptr) return verdict;
    access.has_value = values && access.size <= 8;
    if (access.op == Op::kStore) note_header(thread, before, &access);
    record(thread, access);
    return verdict;
  }

  for (uint32_t i = 0; thread != nullptr && i < touched.count; ++i) {
    const TouchedRun& run = touched.runs[i];
    if (!g_armed.in_range(run.address)) continue;
    Access access{row, &before, fault.t_ns, run.address, run.size, instruction.op};
    if (values && run.size <= 8 && all_armed) {
      if (instruction.op == Op::kLoad) {
        memcpy(&access.value, g_twin.at(run.address), run.size);
        access.has_value = true;
      } else if (instruction.op == Op::kStore && instruction.vector_bytes != 0 && instruction.touch == Touch::kWhole) {
        uint8_t bytes[16] = {};
        read_vector(before.fpstate, instruction.reg, sizeof(bytes), bytes);
        memcpy(&access.value, bytes, run.size);
        access.has_value = true;
      }
    }
    resolve(thread, before, instruction, &access);
    record(thread, access);
  }
  if (verdict == Verdict::kDisplaced) cpu->rip = stub;
  return verdict;
}

// What run_string's callbacks need.
struct StringContext {
  AccessPath* path;
  ThreadState* thread;
  CpuState before;
  CachedInstruction* row;
  uint64_t t_ns;

  static uint64_t translate(void* context, uint64_t address, uint64_t* below, uint64_t* above) {
    constexpr uint64_t kMost = 1ull << 40;
    if (g_armed.armed(address)) {
      *above = g_armed.armed_ahead(address, kMost);
      *below = g_armed.armed_behind(address, kMost) - 1;
      return reinterpret_cast<uint64_t>(g_twin.at(address));
    }
    if (g_committed.armed(address)) {
      // Open by the heap= option: as it is, up to the next closed page.
      uint64_t page = address & ~(ArmedPages::kPageBytes - 1);
      *below = address - page;
      *above = page + ArmedPages::kPageBytes - address;
      return address;
    }
    if (g_armed.in_range(address)) return 0;
    *below = address < g_armed.low() ? address : address - g_armed.high();
    *above = address < g_armed.low() ? g_armed.low() - address : kMost;
    return address;
  }

  static void touched(void* context, uint64_t address, uint64_t bytes, Op op) {
    auto* self = static_cast<StringContext*>(context);
    if (!g_armed.in_range(address)) return;
    self->path->record_run(self->thread, self->before, self->row, address, bytes, op, self->t_ns);
  }
};

Verdict AccessPath::perform_string(ThreadState* thread, CpuState* cpu, CachedInstruction* row, const Fault& fault) {
  StringContext context{this, thread, *cpu, row, fault.t_ns};
  StringAccess access{&context, StringContext::translate, StringContext::touched};
  uint64_t rcx = cpu->gpr[1], rsi = cpu->gpr[6], rdi = cpu->gpr[7];
  if (run_string(row->instruction, cpu, access) == StringResult::kDone) return Verdict::kEmulated;
  // Partly done: go on from there; the instruction traps (or faults for real) again.
  if (cpu->gpr[1] != rcx || cpu->gpr[6] != rsi || cpu->gpr[7] != rdi) return Verdict::kEmulated;
  record_unknown(thread, context.before, row, fault);
  return Verdict::kStep;
}

Verdict AccessPath::perform(ThreadState* thread, CpuState* cpu, const Fault& fault) {
  if (perform_pages != nullptr) return perform_pages(this, thread, cpu, fault);
  CachedInstruction scratch;
  CachedInstruction* row = instructions->lookup(cpu->rip, &scratch);
  // A jump or an int3 touches no heap: it was put there since this thread trapped.
  if (!row->instruction.has_memory && !row->instruction.touches_memory && g_probes.knows(cpu->rip)) {
    return Verdict::kRetry;
  }
  const CpuState before = *cpu;
  Verdict verdict = perform_row(thread, cpu, row, fault);
  if (thread != nullptr && verdict != Verdict::kStep) g_probed.consider(row, before);
  return verdict;
}

Verdict AccessPath::perform_row(ThreadState* thread, CpuState* cpu, CachedInstruction* row, const Fault& fault) {
  const Instruction& instruction = row->instruction;
  if (instruction.length == 0 || (instruction.touches_memory && instruction.size == 0)) {
    record_unknown(thread, *cpu, row, fault);
    return Verdict::kStep;
  }
  if (instruction.execute == Execute::kString) return perform_string(thread, cpu, row, fault);
  return perform_plain(thread, cpu, row, fault);
}

}  // namespace classaccess
