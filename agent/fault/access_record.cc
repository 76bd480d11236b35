// The half of AccessPath that makes records: which object, which site, what is handed on.
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/fault/access.h"
#include "agent/fault/page_windows.h"
#include "agent/fault/probed_access.h"
#include "agent/heap/object_header.h"
#include "agent/protect/twin_view.h"
#include "agent/x86/operand.h"

namespace classaccess {

// Bytes of one record at most: `size` has 32 bits.
constexpr uint64_t kMaxRun = 1u << 30;

__thread RingFull t_ring_full __attribute__((tls_model("initial-exec")));

__thread UnknownObject t_unknown __attribute__((tls_model("initial-exec")));

void push_record(ThreadState* thread, const AccessRecord& record) {
  thread->probes.fresh.note(record);
  while (!thread->ring.push(record)) {
    if (t_ring_full.empty != nullptr) {
      t_ring_full.empty(t_ring_full.context, thread);
      continue;
    }
    if (g_recording.load(std::memory_order_relaxed) == RecordingState::kClosed) {
      ++thread->counters.dropped;
      return;
    }
    ++thread->counters.waits;
    HandlerWindows::shut();  // not for as long as this may take
    wake_writer();
    raw_sleep(100000);
  }
  if ((++thread->counters.recorded & 1023) == 0 && thread->ring.pending() > SpscRing::kCapacity / 2) wake_writer();
}

// Shenandoah evacuates objects on the program's threads, by memcpy: whose copy it is
// only the caller tells. Libc's copies are leaves, so it is on top of the stack.
uint64_t AccessPath::vm_caller(uint64_t pc, const CpuState& cpu) const {
  constexpr int kRsp = 4;
  if (layout->collector != Collector::kShenandoah || layout->in_code_cache(pc) || layout->in_libjvm(pc)) return 0;
  uint64_t caller = 0;
  return safe_load(cpu.gpr[kRsp], &caller) && layout->in_libjvm(caller) ? caller : 0;
}

uint32_t AccessPath::site_of(CachedInstruction* row, const CpuState& cpu) {
  const Instruction& instruction = row->instruction;
  constexpr int kRbp = 5, kR13 = 13;
  bool interpreted = layout->in_interpreter(row->pc);
  uint64_t caller = vm_caller(row->pc, cpu);
  if (!interpreted && caller == 0) {
    uint32_t version = row->site_version.load(std::memory_order_acquire);
    uint32_t id = row->site_id;
    CodeSite cached;
    cached.nmethod = row->site_nmethod;
    cached.compile_id = row->site_compile_id;
    std::atomic_thread_fence(std::memory_order_acquire);
    bool stable = (version & 1) == 0 && row->site_version.load(std::memory_order_relaxed) == version;
    if (stable && id != 0 && (cached.nmethod == 0 || code->still_valid(cached))) return id;
  }
  CodeSite site = code->lookup(row->pc, cpu.gpr[kRbp], cpu.gpr[kR13]);
  uint32_t id = sites->find_or_add(row->pc, site, instruction.bytes, row->fetched, caller);
  if (!interpreted && caller == 0) {
    uint32_t version = row->site_version.load(std::memory_order_relaxed);
    // Whoever finds it odd leaves the caching to the other thread.
    if ((version & 1) == 0 &&
        row->site_version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) {
      row->site_id = id;
      row->site_nmethod = site.nmethod;
      row->site_compile_id = site.compile_id;
      row->site_version.store(version + 2, std::memory_order_release);
    }
  }
  return id;
}

void AccessPath::resolve(ThreadState* thread, const CpuState& cpu, const Instruction& instruction, Access* access) {
  uint64_t candidates[3];
  int count = 0;
  auto add = [&](uint64_t value) {
    if ((value & 7) == 0 && value <= access->address && value >= layout->heap_low) candidates[count++] = value;
  };
  if (instruction.base < 16) add(cpu.gpr[instruction.base]);
  if (instruction.index < 16 && !instruction.vsib) {
    add(cpu.gpr[instruction.index]);
    if (instruction.base < 16) add(cpu.gpr[instruction.base] + cpu.gpr[instruction.index] * instruction.scale);
  }
  ResolveQuery query;
  query.address = access->address;
  query.op = access->op;
  query.java_code = layout->in_code_cache(cpu.rip);
  query.candidates = candidates;
  query.candidate_count = count;
  query.registers = cpu.gpr;
  access->resolution = resolver->resolve(query, &thread->hints);
  auto unknown = [&] { return access->resolution.kind != Resolution::kObject && !access->resolution.fresh; };
  if (unknown() && t_unknown != UnknownObject::kTake && g_probed.enabled()) {
    bool more = true;
    for (int times = 0; more && unknown(); ++times) {
      const uint32_t unmarked = g_probed.times_unmarked();
      more = g_probed.ask_others(thread, times);
      access->resolution = resolver->resolve(query, &thread->hints);
      // Its owner may have begun to drain in between.
      more |= g_probed.may_ask(*thread, times) && g_probed.times_unmarked() != unmarked;
      if (t_unknown == UnknownObject::kLeave) break;
    }
    if (more && unknown() && t_unknown == UnknownObject::kLeave && access->probed &&
        !(access->op == Op::kStore && names_klass(instruction))) {
      access->left = true;
      return;
    }
  }
  if (query.op == Op::kStore && !query.java_code && access->resolution.object != 0 &&
      access->resolution.object == thread->hints.evacuated) {
    // A thread that loses the race to evacuate an object gives its copy up, and the VM lays an
    // array over it: its length comes first.
    uint64_t offset = access->address - access->resolution.object;
    if (offset == layout->array_length_offset && !access->resolution.class_info->is_array) {
      resolver->forget(access->resolution.object, access->resolution.object + 8);
      thread->hints.last_end = 0;
      access->resolution = {};
      access->resolution.kind = Resolution::kPending;
    }
  }
  if (access->resolution.kind == Resolution::kPending) access->kind = RecordKind::kPending;
}

bool AccessPath::make_record(ThreadState* thread, const Access& access, AccessRecord* out) {
  const Resolution& found = access.resolution;
  bool resolved = found.kind == Resolution::kObject;
  bool selected = resolved && found.class_info->selected;
  if (resolved && !selected && access.kind == RecordKind::kAccess) {
    ++thread->counters.filtered;
    return false;
  }
  uint32_t virtual_id = 0;
  if (access.probed) {
    virtual_id = thread->probes.virtual_id;
  } else if (virtual_threads != nullptr) {
    virtual_id = virtual_threads->current(thread);
  }
  if (virtual_id != 0 ? !virtual_threads->row(virtual_id).recorded
                      : thread->choice.load(std::memory_order_relaxed) == ThreadChoice::kVirtualOnly) {
    return false;
  }
  AccessRecord& record = *out;
  record = {};
  record.virtual_id = virtual_id;
  record.t_ns = access.t_ns;
  record.address = access.address;
  record.size = access.size;
  record.op = access.op;
  record.kind = access.kind;
  record.gc_id = g_gc_id.load(std::memory_order_relaxed);
  if (resolved) {
    record.object = found.object;
    record.extent = found.extent;
    record.class_id = found.class_info->id;
    record.flags = static_cast<uint8_t>((selected ? kFlagSelected : 0) | (found.mirror ? kFlagMirror : 0));
    const Instruction& instruction = access.row->instruction;
    // cmp rax,[obj] and test [obj],eax at the object's start: HotSpot's null checks
    // (nobody compares a mark word with a register that way and drops the flags).
    if (instruction.writes_flags_only && access.row->flags_dead && access.address == found.object &&
        layout->in_code_cache(access.row->pc)) {
      record.flags |= kFlagNullCheck;
    }
  } else if (access.kind == RecordKind::kAccess) {
    ++thread->counters.unresolved;
  }
  if (access.has_value) {
    record.value = access.value;
    record.flags |= kFlagValue;
  }
  // A header store of a class that is not selected only settles pending stores.
  if (selected || access.kind != RecordKind::kKlassStore) {
    record.site_id = access.site_id != 0 ? access.site_id : site_of(access.row, *access.cpu);
  }
  return true;
}

void AccessPath::record(ThreadState* thread, const Access& access) {
  AccessRecord record;
  if (!make_record(thread, access, &record)) return;
  if (record.op == Op::kStore && record.kind == RecordKind::kAccess && record.class_id != 0) {
    note_stored_data(record.site_id, access);
  }
  push_record(thread, record);
}

// Looked at late, memory holds what was stored since: a word of an object that was being zeroed
// may look like a Klass by now (four booleans do). HotSpot names the header's word by its own
// displacement from the object.
bool AccessPath::names_klass(const Instruction& instruction) const {
  return instruction.index == kNoReg && instruction.vector_bytes == 0 &&
         instruction.displacement == static_cast<int64_t>(layout->klass_offset);
}

bool AccessPath::resolve_probed(ThreadState* thread, Probed& probed, AccessRecord* record) {
  const Instruction& instruction = probed.row->instruction;
  Access access{probed.row, probed.frame, probed.t_ns, probed.address, probed.size, instruction.op};
  access.site_id = probed.site_id;
  access.probed = true;
  resolve(thread, *probed.registers, instruction, &access);
  probed.left = access.left;
  if (access.left) return false;
  if (access.op == Op::kStore &&
      (names_klass(instruction) || resolver->is_length_store(access.resolution, access.address))) {
    note_header(thread, *probed.registers, &access);
  }
  probed.resolution = access.resolution;
  return make_record(thread, access, record);
}

bool AccessPath::note_probed_header(ThreadState* thread, CachedInstruction* row, uint64_t address) {
  const Instruction& instruction = row->instruction;
  if (!names_klass(instruction)) return false;
  CpuState registers;
  registers.rip = row->pc;
  if (instruction.base < 16) registers.gpr[instruction.base] = address - layout->klass_offset;
  Access access{row, &registers, 0, address, instruction.size, instruction.op};
  access.probed = true;
  resolve(thread, registers, instruction, &access);
  // One that lies behind the thread's present TLAB is known by its header already, but not marked.
  const Resolution& found = access.resolution;
  if (found.kind == Resolution::kObject &&
      (address != found.object + layout->klass_offset || resolver->is_marked(found.object))) {
    return false;
  }
  note_header(thread, registers, &access);
  return access.kind == RecordKind::kKlassStore;
}

// C2 has no debug information for the vector loop of String(char[]): it looks like a part of the newarray behind it.
void AccessPath::note_stored_data(uint32_t site_id, const Access& access) {
  if (site_id == 0) return;
  const SiteInfo& site = sites->row(site_id);
  if (!creates_object(site.bytecode) || site.stores_data.load(std::memory_order_relaxed)) return;
  const Resolution& found = access.resolution;
  uint64_t header = found.class_info->is_array ? layout->array_length_offset + 4 : layout->klass_offset + 8;
  if (access.address - found.object < header) return;
  const Instruction& instruction = access.row->instruction;
  uint64_t bytes[8] = {access.value};
  if (instruction.vector_bytes != 0 && instruction.touch == Touch::kWhole) {
    read_vector(access.cpu->fpstate, instruction.reg, instruction.vector_bytes, reinterpret_cast<uint8_t*>(bytes));
  }
  uint64_t any = 0;
  for (uint64_t word : bytes) any |= word;
  if (any != 0) sites->note_stores_data(site_id);
}

void AccessPath::record_run(ThreadState* thread, const CpuState& cpu, CachedInstruction* row, uint64_t address,
                            uint64_t bytes, Op op, uint64_t t_ns) {
  while (thread != nullptr && bytes > 0) {
    Access access{row, &cpu, t_ns, address, 0, op};
    resolve(thread, cpu, row->instruction, &access);
    uint64_t piece = bytes;
    if (access.resolution.kind == Resolution::kObject) {
      uint64_t in_object = access.resolution.object + access.resolution.extent - address;
      if (piece > in_object) piece = in_object;
    }
    if (piece > kMaxRun) piece = kMaxRun;
    access.size = static_cast<uint32_t>(piece);
    record(thread, access);
    address += piece;
    bytes -= piece;
  }
}

void AccessPath::record_unknown(ThreadState* thread, const CpuState& cpu, CachedInstruction* row, const Fault& fault) {
  if (thread == nullptr) return;
  const uint32_t at_least = 1;
  Access access{row, &cpu, fault.t_ns, fault.address, at_least, fault.write ? Op::kStore : Op::kLoad};
  resolve(thread, cpu, row->instruction, &access);
  record(thread, access);
}

// After a store: did it write a header word of a new object?
void AccessPath::note_header(ThreadState* thread, const CpuState& cpu, Access* access) {
  Resolution& found = access->resolution;
  // With compact headers the Klass is part of the mark word. A live object's mark word is
  // changed by compare-and-exchange only; a plain store to it makes a new object.
  bool klass_store = found.kind != Resolution::kObject || access->address == found.object + layout->klass_offset;
  bool length_store = !klass_store && resolver->is_length_store(found, access->address);
  if (!klass_store && !length_store) return;
  if (klass_store && resolver->is_rewritten(found)) return;
  // What was resolved before the store rests on the old contents, such as the length
  // of an array that lay here before.
  thread->hints.last_end = 0;
  // The array is complete with its length, wherever that is stored last.
  bool length_valid = length_store || !layout->in_code_cache(cpu.rip);
  uint64_t klass_word = length_store ? found.object + layout->klass_offset : access->address;
  Resolution made = resolver->note_header_store(klass_word, length_store ? 4 : access->size, length_valid);
  if (made.kind == Resolution::kObject) {
    found = made;
    access->kind = RecordKind::kKlassStore;
    // An allocation writes the narrow Klass alone; a copy made to evacuate the object writes the
    // word that holds it. (With other headers the two look the same.)
    bool copied = layout->collector == Collector::kShenandoah && layout->compressed_class_pointers &&
                  !layout->compact_headers && access->size == 8 && !layout->in_code_cache(cpu.rip);
    thread->hints.evacuated = copied ? made.object : 0;
  } else if (length_store) {
    access->kind = RecordKind::kKlassStore;
  }
}

void AccessPath::record_whole_array(ThreadState* thread, uint64_t elements, Op op, uint64_t caller) {
  CaughtUp before(thread);
  CachedInstruction row;
  row.pc = caller;
  CpuState cpu;
  cpu.rip = caller;
  Access access{&row, &cpu, monotonic_ns(), elements, 0, op};
  // This thread is in native state: a pause may rebuild the marks meanwhile (the array
  // itself is pinned). Its start is a fixed distance below its first element.
  for (int i = 0; i < 4; ++i) cpu.gpr[i] = elements - 12 - 4 * static_cast<uint64_t>(i);
  uint32_t epoch;
  do {
    epoch = g_gc_id.load(std::memory_order_acquire);
    access.op = Op::kLoad;  // a complete object, whatever happens to it
    resolve(thread, cpu, row.instruction, &access);
  } while (epoch != g_gc_id.load(std::memory_order_acquire));
  const Resolution& found = access.resolution;
  access.op = op;
  if (found.kind != Resolution::kObject || !found.class_info->is_array) {
    if (touch_run != nullptr) return touch_run(this, thread, elements, 1, op, access.t_ns);
    return record(thread, access);
  }
  // Without the padding behind the last element; `size` has 32 bits.
  uint64_t length = *reinterpret_cast<const uint32_t*>(g_twin.at(found.object + layout->array_length_offset));
  uint64_t bytes = length << log2_element_size(found.class_info->layout_helper);
  if (touch_run != nullptr) return touch_run(this, thread, elements, bytes, op, access.t_ns);
  while (bytes > 0) {
    access.size = static_cast<uint32_t>(bytes < kMaxRun ? bytes : kMaxRun);
    record(thread, access);
    access.address += access.size;
    bytes -= access.size;
  }
}

void AccessPath::record_kernel_run(ThreadState* thread, uint64_t address, uint64_t bytes, Op op, uint64_t caller) {
  if (touch_run != nullptr) return touch_run(this, thread, address, bytes, op, monotonic_ns());
  CaughtUp before(thread);
  CachedInstruction row;
  row.pc = caller;
  CpuState cpu;
  cpu.rip = caller;
  for (int i = 0; i < 4; ++i) cpu.gpr[i] = address - 12 - 4 * static_cast<uint64_t>(i);
  record_run(thread, cpu, &row, address, bytes, op, monotonic_ns());
}

}  // namespace classaccess
