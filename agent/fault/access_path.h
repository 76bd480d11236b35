// The life of one access inside the handler: decode, resolve, record, perform.
//
// perform() is called by the fault handler for a fault on an armed page; afterwards
// the interrupted context (a CpuState) is ready to be resumed: behind the instruction,
// at its displaced copy, or at the instruction with a single step to be made.
// Context: signal handler of the faulting thread, which is at no safepoint: a
// stop-the-world collector cannot move objects meanwhile.
#pragma once

#include <cstdint>

#include "agent/fault/instruction_cache.h"
#include "agent/fault/site_table.h"
#include "agent/fault/thread_pool.h"
#include "agent/fault/thread_state.h"
#include "agent/fault/virtual_threads.h"
#include "agent/heap/code_lookup.h"
#include "agent/heap/resolver.h"
#include "agent/heap/vm_layout.h"
#include "agent/x86/instruction.h"

namespace classaccess {

enum class Verdict : uint8_t {
  kRetry,      // the code at rip has become a probe meanwhile: run it
  kEmulated,   // performed; rip is behind the instruction
  kDisplaced,  // rip is at the displaced copy
  kStep,       // open the key in the frame and single-step
};

// The kernel's view of the fault.
struct Fault {
  uint64_t address = 0;
  bool write = false;
  uint64_t t_ns = 0;        // CLOCK_MONOTONIC when the handler was entered
  void* context = nullptr;  // the frame (ucontext_t)
};

class AccessPath {
 public:
  // Everything pointed to outlives the recording.
  VmLayout* layout = nullptr;
  ClassTable* classes = nullptr;
  CodeLookup* code = nullptr;
  SiteTable* sites = nullptr;
  Resolver* resolver = nullptr;
  ThreadPool* threads = nullptr;
  VirtualThreads* virtual_threads = nullptr;  // null: there are none
  InstructionCache* instructions = nullptr;
  uint64_t java_thread_vtable = 0;  // of an ordinary JavaThread
  bool values = false;              // values=on
  bool filter_threads = false;      // threads= was given
  bool late = false;                // attached: older threads of every kind have the key closed
  bool part_of_heap = false;        // heap= leaves committed pages open

  // mode=pages (agent/pages): performs the instruction and counts the pages it touches, in place of
  // perform(); and takes a run of bytes that no instruction of the thread touches. Null: other modes.
  Verdict (*perform_pages)(AccessPath* path, ThreadState* thread, CpuState* cpu, const Fault& fault) = nullptr;
  void (*touch_run)(AccessPath* path, ThreadState* thread, uint64_t address, uint64_t bytes, Op op,
                    uint64_t t_ns) = nullptr;

  // `thread` null: performed without a record.
  Verdict perform(ThreadState* thread, CpuState* cpu, const Fault& fault);
  // The same for an instruction known already: `cpu->rip` may hold other bytes by now.
  Verdict perform_row(ThreadState* thread, CpuState* cpu, CachedInstruction* row, const Fault& fault);

  // Normal context, on a recorded thread inside an AgentScope: the array whose first
  // element is at `elements` was handed to native code, called from `caller`.
  void record_whole_array(ThreadState* thread, uint64_t elements, Op op, uint64_t caller);
  // The same for `bytes` bytes that the kernel has touched in a system call of `caller`.
  void record_kernel_run(ThreadState* thread, uint64_t address, uint64_t bytes, Op op, uint64_t caller);

  // An access that a probe has made.
  struct Probed {
    CachedInstruction* row = nullptr;
    uint32_t site_id = 0;                 // 0: of the interpreter, look it up
    const CpuState* registers = nullptr;  // of the operand, the others 0
    const CpuState* frame = nullptr;      // what site_of needs
    uint64_t address = 0;
    uint32_t size = 0;
    uint64_t t_ns = 0;
    bool left = false;      // out: its object is not known yet (UnknownObject::kLeave); no record
    Resolution resolution;  // out
  };
  // Makes its record. False: of a class that is not selected (counted). Under the thread's
  // DrainScope, by any thread.
  bool resolve_probed(ThreadState* thread, Probed& probed, AccessRecord* record);
  // If a probe's store of a Klass (its operand has no index) has made an object, marks it and
  // returns true. No record.
  bool note_probed_header(ThreadState* thread, CachedInstruction* row, uint64_t address);

  uint32_t site_of(CachedInstruction* row, const CpuState& cpu);

 private:
  bool names_klass(const Instruction& instruction) const;
  struct Access;  // one run of bytes of one instruction

  Verdict perform_plain(ThreadState* thread, CpuState* cpu, CachedInstruction* row, const Fault& fault);
  Verdict perform_string(ThreadState* thread, CpuState* cpu, CachedInstruction* row, const Fault& fault);
  void resolve(ThreadState* thread, const CpuState& cpu, const Instruction& instruction, Access* access);
  void note_header(ThreadState* thread, const CpuState& cpu, Access* access);
  bool make_record(ThreadState* thread, const Access& access, AccessRecord* record);
  void record(ThreadState* thread, const Access& access);
  void note_stored_data(uint32_t site_id, const Access& access);
  void record_run(ThreadState* thread, const CpuState& cpu, CachedInstruction* row, uint64_t address, uint64_t bytes,
                  Op op, uint64_t t_ns);
  void record_unknown(ThreadState* thread, const CpuState& cpu, CachedInstruction* row, const Fault& fault);
  uint64_t vm_caller(uint64_t pc, const CpuState& cpu) const;

  friend struct StringContext;
};

// Pushes into the thread's ring; waits while it is full. Drops (and counts) only when
// the recording has been closed.
void push_record(ThreadState* thread, const AccessRecord& record);

// What becomes of an access whose object is not known: another thread's probes may have made it,
// whose records nobody has looked at. kAsk, in a handler: looks for it there, and waits for those
// who drain them. kLeave, the writer: does not wait, but leaves a probe's record where it is for
// another round. kTake: it is recorded as it is.
enum class UnknownObject : uint8_t { kAsk, kLeave, kTake };
extern __thread UnknownObject t_unknown __attribute__((tls_model("initial-exec")));

// Set on the writer's own thread while it drains: it empties a full ring itself.
struct RingFull {
  void (*empty)(void* context, ThreadState* thread) = nullptr;
  void* context = nullptr;
};
extern __thread RingFull t_ring_full __attribute__((tls_model("initial-exec")));

}  // namespace classaccess
