#include "agent/pages/page_trap.h"

#include "agent/pages/open_pages.h"
#include "agent/pages/touched_pages.h"
#include "agent/pages/undisturbed.h"
#include "agent/protect/protection_key.h"

namespace classaccess {
namespace {

constexpr uint32_t kBatch = 32;

__thread PageThread t_page_thread __attribute__((tls_model("initial-exec")));
// What the thread knows is of this recording.
__thread uint32_t t_round __attribute__((tls_model("initial-exec")));

void renew() {
  const uint32_t round = g_open_pages.round();
  if (t_round == round) return;
  t_round = round;
  t_page_thread = {};
}

// What this trap may change of the thread's rights.
void look_at_rights(void* context) {
  renew();
  if (g_key.page_keys() == 0) return;
  // The agent's own work, or a single step, has closed them all.
  if (g_key.take_dropped()) g_open_pages.drop(&t_page_thread);
  uint32_t in_frame = g_key.page_rights_in_frame(context);
  if ((in_frame & ~t_page_thread.held) != 0) g_open_pages.adopt(in_frame | t_page_thread.held, &t_page_thread);
  t_page_thread.changeable = in_frame == t_page_thread.held;
}

// Whether this thread's touches count, and whose they are.
bool is_wanted(const AccessPath& path, ThreadState* thread, uint32_t* virtual_id) {
  *virtual_id = path.virtual_threads != nullptr ? path.virtual_threads->current(thread) : 0;
  if (*virtual_id != 0) return path.virtual_threads->row(*virtual_id).recorded;
  ThreadChoice choice = thread->choice.load(std::memory_order_relaxed);
  // Until `threads=` has decided: what enters the model cannot be taken out of it again.
  if (choice == ThreadChoice::kUndecided) return !path.filter_threads;
  return choice == ThreadChoice::kRecorded;
}

uint32_t take(ThreadState* thread, TouchedPages* touches, uint64_t t_ns, uint32_t virtual_id) {
  uint32_t all = 0;
  for (bool done = false; !done;) {
    OpenPages::Counted counted[kBatch];
    uint32_t count = g_open_pages.take(touches, &t_page_thread, counted, kBatch, &done);
    all += count;
    // Outside the lock: a full ring waits.
    for (uint32_t i = 0; i < count; ++i) {
      AccessRecord record = {};
      record.kind = RecordKind::kPage;
      record.t_ns = t_ns;
      record.address = counted[i].page;
      record.object = counted[i].from;
      record.op = counted[i].op;
      record.virtual_id = virtual_id;
      push_record(thread, record);
    }
  }
  return all;
}

bool reaches(TouchedPages touches, uint64_t address) {
  PageTouch touch;
  while (touches.next(&touch)) {
    if (g_open_pages.page_of(touch.address) == g_open_pages.page_of(address)) return true;
  }
  return false;
}

Verdict perform(AccessPath* path, ThreadState* thread, CpuState* cpu, const Fault& fault) {
  CachedInstruction scratch;
  CachedInstruction* row = path->instructions->lookup(cpu->rip, &scratch);
  const Instruction& instruction = row->instruction;
  const CpuState before = *cpu;
  Verdict verdict = path->perform_row(nullptr, cpu, row, fault);
  uint32_t virtual_id = 0;
  // CLFLUSH and the like fault but touch nothing.
  bool touches = instruction.length == 0 || instruction.touches_memory;
  if (thread == nullptr || !touches || !is_wanted(*path, thread, &virtual_id)) return verdict;
  const uint64_t page_bytes = g_open_pages.page_bytes();
  TouchedPages pages(instruction, before, *cpu, page_bytes);
  // What was not decoded, or could not be done, has touched what the kernel says.
  if (instruction.length == 0 || (verdict == Verdict::kStep && !reaches(pages, fault.address))) {
    pages = TouchedPages(fault.address, 1, fault.write ? Op::kStore : Op::kLoad, page_bytes);
  }
  look_at_rights(fault.context);
  const uint32_t had = t_page_thread.held;
  if (take(thread, &pages, fault.t_ns, virtual_id) == 0) g_open_pages.settle(fault.address, had, &t_page_thread);
  if (t_page_thread.changeable && t_page_thread.held != had) {
    g_key.set_page_rights_in_frame(fault.context, t_page_thread.held);
  }
  return verdict;
}

void touch_run(AccessPath* path, ThreadState* thread, uint64_t address, uint64_t bytes, Op op, uint64_t t_ns) {
  uint32_t virtual_id = 0;
  if (!is_wanted(*path, thread, &virtual_id)) return;
  TouchedPages pages(address, bytes, op, g_open_pages.page_bytes());
  Undisturbed undisturbed;
  renew();
  t_page_thread.changeable = false;  // there is no frame to change them in
  take(thread, &pages, t_ns, virtual_id);
}

// Whatever it had.
void drop_rights() {
  if (g_key.page_keys() == 0) return;
  if (g_key.denied_here()) g_key.deny_here();
  g_key.take_dropped();
  g_open_pages.drop(&t_page_thread);
}

}  // namespace

void drop_page_rights() {
  Undisturbed undisturbed;
  renew();
  drop_rights();
}

void leave_page_window() {
  Undisturbed undisturbed;
  renew();
  drop_rights();
  g_open_pages.leave(&t_page_thread);
}

void enable_page_trap(AccessPath* access) {
  access->touch_run = touch_run;
  access->perform_pages = perform;
}

}  // namespace classaccess
