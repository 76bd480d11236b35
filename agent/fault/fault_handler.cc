#include "agent/fault/fault_handler.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/safe_load.h"
#include "agent/base/thread_offset.h"
#include "agent/calls/patch_trap.h"
#include "agent/fault/context.h"
#include "agent/fault/gs_base.h"
#include "agent/fault/own_fault.h"
#include "agent/fault/own_thread.h"
#include "agent/fault/page_windows.h"
#include "agent/fault/probe_fault.h"
#include "agent/fault/probed_access.h"
#include "agent/fault/settle.h"
#include "agent/fault/signal_chain.h"
#include "agent/fault/signal_frames.h"
#include "agent/fault/single_step.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_conversion.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/protection_key.h"
#include "agent/protect/twin_view.h"
#include "agent/x86/operand.h"
#include "agent/x86/string_ops.h"

namespace classaccess {
namespace {

SignalChain g_segv, g_bus, g_trap;
std::atomic<bool> g_started{false};
volatile uint64_t g_self_test_page;
volatile bool g_self_test_seen;

// The recording failed and the program goes on: its code becomes what it was. Done by the
// first thread that traps or fills its buffer afterwards and finds the patch lock free; while
// it is here in Java code, HotSpot's safepoints wait for it.
void take_probes_back() {
  if (g_probes.closed() || g_recording.load(std::memory_order_acquire) != RecordingState::kClosed) return;
  uint64_t before = g_counters.probes_taken_back.load(std::memory_order_relaxed);
  if (!g_probes.close(ProbeSites::Program::kRunning)) return;
  raw_log(LogLevel::kInfo, "probes: %lu taken back, %u left, %u stay until the recording is stopped",
          g_counters.probes_taken_back.load(std::memory_order_relaxed) - before, g_probes.in_force_now(),
          g_probes.left_behind.load(std::memory_order_relaxed));
}

// Our handlers put nothing in front of the previous ones any more; they may be called by one
// that another library has put in front of ours.
std::atomic<bool> g_stopped{false};

Verdict perform(ThreadState* thread, CpuState* cpu, const Fault& fault) {
  if (g_twin.created()) return g_fault_access->perform(thread, cpu, fault);
  // The heap is read and written where it is: the kernel has closed the key for this
  // handler, and gives the thread its own right back at its end.
  if (g_gate.per_thread()) {
    g_key.allow_here();
    return g_fault_access->perform(thread, cpu, fault);
  }
  HandlerWindows windows;
  return g_fault_access->perform(thread, cpu, fault);
}

// An instruction that runs as the plain copy of a probe.
struct PlainCopy {
  CachedInstruction* row = nullptr;
  bool recorded = false;
};

// A fault on an armed page.
void trap(siginfo_t* info, ucontext_t* uc, PlainCopy plain = {}) {
  Fault fault;
  fault.address = reinterpret_cast<uint64_t>(info->si_addr);
  if (t_step.pc != 0 && t_step.pc == static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]) &&
      (uc->uc_mcontext.gregs[REG_EFL] & static_cast<greg_t>(kTrapFlag)) != 0) {
    // The instruction being stepped needs one more page. (Without the flag: a step that
    // never ended, its own signal's handler jumped away.)
    g_gate.pass_in_frame(uc);
    open_for_step(fault.address);
    return;
  }
  bool on = recording();
  if (!on) take_probes_back();
  ThreadState* thread = on ? recorded_thread() : nullptr;
  if (thread == nullptr && g_gate.per_thread()) {
    g_gate.pass_in_frame(uc);
    return;
  }
  if (!on) {
    // With mprotect the first to notice that the recording is over opens the heap.
    g_gate.open_all();
    return;
  }
  fault.write = (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  fault.t_ns = monotonic_ns();
  fault.context = uc;
  CpuState cpu;
  read_context(uc, &cpu);
  Verdict verdict;
  if (plain.row != nullptr) {
    uint64_t copy = cpu.rip;
    cpu.rip = plain.row->pc;
    if (plain.recorded || thread == nullptr) {
      verdict = g_fault_access->perform_row(nullptr, &cpu, plain.row, fault);
    } else {
      CaughtUp before(thread);
      verdict = g_fault_access->perform_row(thread, &cpu, plain.row, fault);
    }
    if (verdict == Verdict::kStep) cpu.rip = copy;
  } else if (thread != nullptr && g_probed.enabled()) {
    CaughtUp before(thread);
    verdict = perform(thread, &cpu, fault);
  } else {
    if (thread != nullptr) tell_own_context(thread);
    verdict = perform(thread, &cpu, fault);
  }
  if (verdict == Verdict::kRetry) return;
  ThreadCounters unrecorded;
  ThreadCounters& counters = thread != nullptr ? thread->counters : unrecorded;
  ++counters.traps;
  switch (verdict) {
    case Verdict::kRetry: break;
    case Verdict::kEmulated:
      ++counters.emulated;
      write_context(cpu, uc);
      break;
    case Verdict::kDisplaced:
      ++counters.displaced;
      uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(cpu.rip);
      break;
    case Verdict::kStep:
      ++counters.stepped;
      begin_step(cpu.rip, fault.address, uc);
      break;
  }
  if (thread == nullptr) count(g_counters.unrecorded);
  counters.self_ns += monotonic_ns() - fault.t_ns;
}

// Ours if true: the context is ready to be resumed.
bool handle(int signal, siginfo_t* info, ucontext_t* uc) {
  // Without a twin our own safe loads and string instructions meet closed pages too.
  if (!g_twin.created() && g_gate.is_fault(signal, info) && g_armed.armed(reinterpret_cast<uint64_t>(info->si_addr))) {
    if (!HandlerWindows::take_fault(reinterpret_cast<uint64_t>(info->si_addr))) trap(info, uc);
    return true;
  }
  auto pc = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
  uint64_t resume = safe_load_recover(pc);
  if (resume == 0) resume = string_recover(pc);
  if (resume != 0) {
    uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(resume);
    return true;
  }
  if (info->si_code <= 0) return signal == SIGBUS && patch_asked(info, uc);  // sent, not a fault
  if (CachedInstruction* row = g_fault_access->instructions->row_of_copy(pc)) {
    // A copy cannot do it: the original, single-stepped, faults where others expect it. Its
    // record is made already.
    row->no_stub.store(true, std::memory_order_relaxed);
    uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(row->pc);
    if (t_state != nullptr) ++t_state->counters.stepped;
    begin_step(row->pc, reinterpret_cast<uint64_t>(info->si_addr) - static_cast<uint64_t>(g_twin.distance()), uc);
    return true;
  }
  const ProbeFault found = probe_fault(signal, info, uc);
  switch (found) {
    case ProbeFault::kNotOurs: break;
    case ProbeFault::kResume: return true;
    case ProbeFault::kChain: return false;
    case ProbeFault::kClosedPage:
    case ProbeFault::kUnrecorded:
      trap(info, uc, {static_cast<CachedInstruction*>(g_probes.at(pc)->owner), found == ProbeFault::kClosedPage});
      return true;
    case ProbeFault::kNeedsRoom: {
      // A compiler thread that runs Java code (to start another one) is not closed out: it meets
      // probes all the same, and is none of the program's.
      bool closed = t_state != nullptr || !g_gate.per_thread() || g_key.denied_in_frame(uc);
      ThreadState* thread = recording() && closed ? recorded_thread() : nullptr;
      // Inside an AgentScope the records of before are still its own.
      bool kept = t_state != nullptr && t_agent_depth != 0 && !t_retired &&
                  t_state->choice.load(std::memory_order_relaxed) != ThreadChoice::kExcluded;
      if (thread == nullptr && recording() && kept) thread = t_state;
      uint64_t room = g_probed.make_room(thread);
      probe_has_room(info, uc, room);
      if (!recording()) take_probes_back();
      return true;
    }
  }
  auto address = reinterpret_cast<uint64_t>(info->si_addr);
  constexpr int kNotPermitted = 2;  // SEGV_ACCERR
  bool armed = g_gate.is_fault(signal, info) && g_armed.armed(address);
  if (!armed && signal == SIGSEGV && info->si_code == kNotPermitted && HeapConversion::wait(address, pc)) return true;
  if (!g_gate.is_fault(signal, info)) return false;
  if (g_armed.armed(address)) {
    trap(info, uc);
    return true;
  }
  if (g_self_test_page != 0 && address == g_self_test_page) {
    g_self_test_seen = true;
    if (g_gate.per_thread()) {
      g_gate.pass_in_frame(uc);
    } else {
      g_gate.open_page(address);
    }
    return true;
  }
  return false;
}

// HotSpot's handler may read the heap: the kernel has closed the key for this one, and
// with mprotect what it reads is not the program's. Another's runs with the rights of the
// thread that it interrupted: it may never come back here (siglongjmp).
void chain(SignalChain& next, int entry, bool from_kernel, siginfo_t* info, void* context) {
  if (!next.first_behind(entry)) {
    if (g_key.allocated() && !g_key.denied_in_frame(context)) g_key.allow_here();
    return next.chain(entry, from_kernel, info, context);
  }
  bool keys = g_gate.per_thread();
  UnwatchedScope unwatched;
  if (!keys) ++t_agent_depth;
  if (g_key.allocated()) g_key.allow_here();
  next.chain(entry, from_kernel, info, context);
  if (!keys) --t_agent_depth;
}

// Another handler that is in front of ours may have been entered with SIGSEGV blocked.
void unblock_guarded() {
  uint64_t mask = kGuardedSignals;
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, reinterpret_cast<long>(&mask), 0, 8);
}

bool in_copy_or_probe(uint64_t pc) {
  return g_fault_access->instructions->row_of_copy(pc) != nullptr || g_probes.room().contains(pc) ||
         g_probes.library_room().contains(pc);
}

// Asked to settle: does the interrupted thread stand outside of all that is ours?
bool settle_here(ucontext_t* uc) {
  const auto& registers = uc->uc_mcontext.gregs;
  if (t_inside != 1 || t_step.pc != 0 || t_agent_depth != 0 ||
      in_copy_or_probe(static_cast<uint64_t>(registers[REG_RIP])) ||
      handler_goes_back_to(static_cast<uint64_t>(registers[REG_RSP]), fs_base(), FaultHandler::is_agent_code)) {
    return false;
  }
  // As a thread is that never had to do with us: the next recording finds it so.
  if (t_state != nullptr) g_gate.stop_in_frame(uc);
  if (g_probed.enabled()) ProbedAccess::forget_this_thread();
  watch_this_thread(0, 0);
  kernel_mask(uc) |= t_hidden_mask;
  t_hidden_mask = 0;
  return true;
}

void on_fault(int entry, const void* caller, int signal, siginfo_t* info, void* context) {
  int saved_errno = errno;
  auto* uc = static_cast<ucontext_t*>(context);
  SignalChain& next = signal == SIGSEGV ? g_segv : g_bus;
  bool from_kernel = next.called_by_kernel(caller);
  Inside inside(from_kernel ? uc : nullptr);
  renew();
  if (!from_kernel) unblock_guarded();
  if (g_stopped.load(std::memory_order_acquire) || !handle(signal, info, uc)) {
    if (t_state != nullptr) ++t_state->counters.chained;
    // The instruction being stepped has a fault of its own: give it back clean.
    if (t_step.pc != 0 && t_step.pc == static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP])) end_step(uc);
    name_own_fault(signal, info, uc);
    inside.leave_to_another();
    chain(next, entry, from_kernel, info, context);
  }
  errno = saved_errno;
}

void on_trap(int entry, const void* caller, int signal, siginfo_t* info, void* context) {
  int saved_errno = errno;
  auto* uc = static_cast<ucontext_t*>(context);
  bool from_kernel = g_trap.called_by_kernel(caller);
  Inside inside(from_kernel ? uc : nullptr);
  renew();
  if (!from_kernel) unblock_guarded();
  std::atomic<Settled>* slot = info->si_code == SI_QUEUE ? settle_slot(info->si_value.sival_ptr) : nullptr;
  if (slot != nullptr) {
    slot->store(settle_here(uc) ? Settled::kYes : Settled::kNotYet, std::memory_order_release);
  } else if (info->si_code == SI_QUEUE && reinterpret_cast<uint64_t>(info->si_value.sival_ptr) == kArmRequest) {
    // It may have interrupted our own handler, which adopts the thread by itself: the frame is not
    // the program's then.
    ThreadState* thread = FaultHandler::adopt_this_thread(true);
    if (t_inside == 1 && thread != nullptr && recording() &&
        thread->choice.load(std::memory_order_relaxed) != ThreadChoice::kExcluded) {
      g_gate.stop_in_frame(uc);
    }
  } else if (info->si_code == SI_KERNEL &&
             g_probes.trapped_for_us(static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]) - 1)) {
    // The int3 of a patch under way: until it is done the thread comes here again.
    uc->uc_mcontext.gregs[REG_RIP] -= 1;
  } else if (patch_trap(info, uc)) {                                               // of an entry that is being hooked
  } else if (info->si_code > 0 && info->si_code != SI_KERNEL && t_step.pc != 0) {  // SI_KERNEL: int3
    end_step(uc);
  } else {
    inside.leave_to_another();
    chain(g_trap, entry, from_kernel, info, context);
  }
  errno = saved_errno;
}

// One function for each place in a chain (signal_chain.h).
template <int kEntry>
void fault_entry(int signal, siginfo_t* info, void* context) {
  on_fault(kEntry, __builtin_return_address(0), signal, info, context);
}
template <int kEntry>
void trap_entry(int signal, siginfo_t* info, void* context) {
  on_trap(kEntry, __builtin_return_address(0), signal, info, context);
}
constexpr SignalChain::Action kFaultEntries[] = {fault_entry<0>, fault_entry<1>, fault_entry<2>, fault_entry<3>,
                                                 fault_entry<4>, fault_entry<5>, fault_entry<6>, fault_entry<7>};
constexpr SignalChain::Action kTrapEntries[] = {trap_entry<0>, trap_entry<1>, trap_entry<2>, trap_entry<3>,
                                                trap_entry<4>, trap_entry<5>, trap_entry<6>, trap_entry<7>};

// Reads a closed page of our own: the handler must be reached and open it.
const char* self_test() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return "no memory";
  bool keys = g_gate.per_thread();
  if (keys && g_key.tag(reinterpret_cast<uint64_t>(page), 4096) != 0) return "pages cannot be given the protection key";
  g_self_test_page = reinterpret_cast<uint64_t>(page);
  if (keys) {
    g_key.deny_here();
  } else {
    mprotect(page, 4096, PROT_NONE);
  }
  (void)*static_cast<volatile char*>(page);
  bool opened = !keys || !g_key.denied_here();
  if (keys) g_key.allow_here();
  g_self_test_page = 0;
  munmap(page, 4096);
  if (!g_self_test_seen) return "the SIGSEGV handler is not reached";
  return opened ? "" : "the thread's rights cannot be changed from a signal frame";
}

}  // namespace

const char* FaultHandler::start(AccessPath* access) {
  g_fault_access = access;
  g_self_test_seen = false;
  g_stopped.store(false, std::memory_order_release);
  init_gs_base();
  init_xstate_layout();
  constexpr int kEntries = SignalChain::kEntries;
  if (!g_segv.install(SIGSEGV, kFaultEntries, kEntries) || !g_bus.install(SIGBUS, kFaultEntries, kEntries) ||
      !g_trap.install(SIGTRAP, kTrapEntries, kEntries)) {
    return "a signal handler could not be installed";
  }
  const char* problem = self_test();
  g_started.store(true, std::memory_order_release);
  if (problem[0] != '\0') stop();
  return problem;
}

void FaultHandler::stop() {
  g_started.store(false, std::memory_order_release);
  g_stopped.store(true, std::memory_order_release);
  g_segv.restore();
  g_bus.restore();
  g_trap.restore();
}

bool FaultHandler::in_front() { return g_segv.in_front(); }

SignalChain* FaultHandler::chain_of(int signal) {
  if (!g_started.load(std::memory_order_acquire)) return nullptr;
  switch (signal) {
    case SIGSEGV: return &g_segv;
    case SIGBUS: return &g_bus;
    case SIGTRAP: return &g_trap;
    default: return nullptr;
  }
}

FaultHandler::Replaced FaultHandler::retake() {
  Replaced replaced;
  if (g_recording.load(std::memory_order_relaxed) != RecordingState::kOn) return replaced;
  for (int signal : {SIGSEGV, SIGBUS, SIGTRAP}) {
    if (void* handler = chain_of(signal)->retake()) {
      count(g_counters.handlers_replaced);
      replaced = {signal, handler};
    }
  }
  return replaced;
}

bool FaultHandler::is_agent_code(uint64_t pc) { return in_own_text(pc) || in_copy_or_probe(pc); }

}  // namespace classaccess
