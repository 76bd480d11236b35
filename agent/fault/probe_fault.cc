#include "agent/fault/probe_fault.h"

#include <string.h>

#include "agent/base/counters.h"
#include "agent/fault/context.h"
#include "agent/fault/fault_handler.h"
#include "agent/fault/gs_base.h"
#include "agent/fault/instruction_cache.h"
#include "agent/probe/probe_sites.h"
#include "agent/probe/probe_thread.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/twin_view.h"
#include "agent/x86/operand.h"

namespace classaccess {
namespace {

// HotSpot takes a fault below it for an implicit null check and looks at no code.
constexpr uint64_t kNullPages = 65536;
// A site that meets so many addresses outside the heap is better off without a probe.
constexpr uint32_t kMaxOutside = 64;

// So it does in the page in front of a heap with a base.
bool is_null(uint64_t address) { return address < kNullPages || g_probes.compressed_null(address); }

void set_rip(ucontext_t* uc, uint64_t rip) { uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(rip); }

uint64_t operand_address(const Probe& probe, const ucontext_t* uc) {
  CpuState cpu;
  read_context(uc, &cpu);
  cpu.rip = probe.pc;
  return effective_address(*probe.instruction, cpu);
}

// The site's own instruction, for those who look at the code of a fault.
void take_back(const Probe& probe) {
  static_cast<CachedInstruction*>(probe.owner)->no_probe.store(true, std::memory_order_relaxed);
  LayResult result;
  while ((result = g_probes.take_back(probe.pc)) == LayResult::kBusy) asm volatile("pause");
  if (result != LayResult::kLaid) count(g_counters.probes_stuck);
}

// No stack for a library probe's three pushes: registers and RSP as they were at the site.
void undo_pushes(const Probe& probe, uint64_t offset, ucontext_t* uc) {
  constexpr uint64_t kFirstPush = 5;  // behind lea rsp, [rsp-128]
  constexpr uint8_t kRexB = 0x41;
  const auto* code = reinterpret_cast<const uint8_t*>(probe.start);
  if (offset >= kFirstPush) uc->uc_mcontext.gregs[REG_RSP] += 128;
  for (uint64_t at = kFirstPush; at < offset; at += code[at] == kRexB ? 2 : 1) uc->uc_mcontext.gregs[REG_RSP] += 8;
}

ProbeFault at_record(Probe* probe, uint64_t offset, ucontext_t* uc) {
  const ProbeShape& shape = probe->shape;
  if (offset < shape.pushed) {
    undo_pushes(*probe, offset, uc);
    set_rip(uc, probe->start + shape.unrecorded);
    return ProbeFault::kResume;
  }
  if (shape.method_load == 0 || offset != shape.method_load) return ProbeFault::kNeedsRoom;
  // Not a frame of the interpreter's: the drain finds no method then.
  uc->uc_mcontext.gregs[kGregs[shape.address_register]] = 0;
  set_rip(uc, probe->start + shape.method_load_end);
  return ProbeFault::kResume;
}

// The record that the probe has just made: its access was not one to the heap.
void forget_record(const Probe& probe, uint64_t address) {
  ThreadState* thread = FaultHandler::this_thread();
  if (thread == nullptr || thread->probes.begin == 0) return;
  DrainScope scope(&thread->probes, true);
  const uint64_t at = t_probe.cursor - 8u * probe.shape.record_words;
  if (at < thread->probes.drained.load(std::memory_order_relaxed) || at < thread->probes.begin ||
      at >= thread->probes.begin + ProbeBuffer::kBytes) {
    return;
  }
  // A signal handler's may have come behind it.
  const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
  if (record.address == address && g_probes.at(probe.start) == &g_probes.row(probe_id_of(record.head))) {
    t_probe.cursor = at;
  }
}

ProbeFault at_access(Probe* probe, siginfo_t* info, ucontext_t* uc) {
  uint64_t address = operand_address(*probe, uc);
  if (is_null(address)) {
    set_rip(uc, probe->pc);
    info->si_addr = reinterpret_cast<void*>(address);
    info->si_code = address < kNullPages ? SEGV_MAPERR : SEGV_ACCERR;
    return ProbeFault::kChain;
  }
  // A thread's first probe: its GS base is not set. It cannot be if the thread uses GS.
  if (g_armed.in_range(address) && !gs_base_is(g_twin.distance()) && gs_base_ready(g_twin.distance())) {
    return ProbeFault::kResume;
  }
  // In the heap, but this thread's GS base is its own: the plain copy traps.
  if (g_armed.armed(address)) {
    set_rip(uc, probe->start + probe->shape.plain);
    return ProbeFault::kResume;
  }
  forget_record(*probe, address);
  if (probe->outside.fetch_add(1, std::memory_order_relaxed) == kMaxOutside) {
    count(g_counters.probes_outside);
    take_back(*probe);
  }
  set_rip(uc, probe->start + probe->shape.plain);
  return ProbeFault::kResume;
}

}  // namespace

ProbeFault probe_fault(int signal, siginfo_t* info, ucontext_t* uc) {
  auto pc = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
  Probe* probe = g_probes.enabled() ? g_probes.at(pc) : nullptr;
  if (probe == nullptr) return ProbeFault::kNotOurs;
  uint64_t offset = pc - probe->start;
  if (offset < probe->shape.access) return at_record(probe, offset, uc);
  if (offset < probe->shape.plain) return at_access(probe, info, uc);
  auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (g_gate.is_fault(signal, info) && g_armed.armed(address)) {
    return offset < probe->shape.leave ? ProbeFault::kClosedPage : ProbeFault::kUnrecorded;
  }
  set_rip(uc, probe->pc);
  if (signal != SIGSEGV || !is_null(address) || info->si_code == SI_KERNEL) take_back(*probe);
  return ProbeFault::kChain;
}

void probe_has_room(const siginfo_t* info, ucontext_t* uc, uint64_t room) {
  const Probe& probe = *g_probes.at(static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]));
  greg_t& cursor_register = uc->uc_mcontext.gregs[kGregs[probe.shape.cursor_register]];
  auto cursor = static_cast<uint64_t>(cursor_register);
  // The words in front of the one that did not fit.
  uint64_t written = reinterpret_cast<uint64_t>(info->si_addr) - cursor;
  if (cursor != 0 && written < 8u * probe.shape.record_words) {
    memcpy(reinterpret_cast<void*>(room), reinterpret_cast<const void*>(cursor), written);
  }
  cursor_register = static_cast<greg_t>(room);
  t_probe.cursor = room;
}

}  // namespace classaccess
