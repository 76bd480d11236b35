#include "agent/protect/heap_gate.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/base/raw_syscall.h"
#include "agent/base/thread_offset.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/protection_key.h"

#ifndef SEGV_ACCERR
#define SEGV_ACCERR 2
#endif
#ifndef SEGV_PKUERR
#define SEGV_PKUERR 4
#endif

namespace classaccess {

HeapGate g_gate;
__thread uint32_t t_agent_depth __attribute__((tls_model("initial-exec"))) = 0;

__thread WatchedWindow t_watched __attribute__((tls_model("initial-exec")));

namespace {

// Of t_watched outside of AgentScopes.
__thread uint64_t t_own_bytes __attribute__((tls_model("initial-exec"))) = 0;

constexpr long kOpen = PROT_READ | PROT_WRITE;

int protect(uint64_t low, uint64_t bytes, long prot) {
  return static_cast<int>(-raw_syscall(SYS_mprotect, static_cast<long>(low), static_cast<long>(bytes), prot));
}

void open_pages(uint64_t low, uint64_t bytes, bool keys) {
  if (keys) {
    raw_syscall(SYS_pkey_mprotect, static_cast<long>(low), static_cast<long>(bytes), kOpen, 0);
  } else {
    protect(low, bytes, kOpen);
  }
}

// Calls f(low, bytes) for each run of armed pages.
template <typename F>
void for_each_armed_run(F&& f) {
  for (uint64_t page = g_armed.low(); page < g_armed.high();) {
    uint64_t run = g_armed.armed_ahead(page, g_armed.high() - page);
    if (run != 0) f(page, run);
    page += run != 0 ? run : ArmedPages::kPageBytes;
  }
}

}  // namespace

const char* HeapGate::choose(BackEnd back_end) {
  back_end_ = back_end;
  return back_end == BackEnd::kPkey ? g_key.alloc() : "";
}

void HeapGate::release() { g_key.release(); }

void HeapGate::begin_again() { ended_.store(false, std::memory_order_release); }

void HeapGate::end() {
  ended_.store(true, std::memory_order_release);
  open_all();
}

int HeapGate::close_range(uint64_t low, uint64_t high) {
  int error = 0;
  if (ended_.load(std::memory_order_acquire)) return 0;
  if (per_thread()) {
    error = g_key.tag(low, high - low);
  } else if (closed_) {
    error = protect(low, high - low, PROT_NONE);
  }
  if (error == 0) g_armed.set(low, high);
  return error;
}

void HeapGate::close_committed(uint64_t low, uint64_t high) {
  for (uint64_t page = low; page < high;) {
    uint64_t run = g_committed.armed_ahead(page, high - page);
    if (run != 0 && !g_armed.armed(page, run)) close_range(page, page + run);
    page += run != 0 ? run : ArmedPages::kPageBytes;
  }
}

void HeapGate::open_range(uint64_t low, uint64_t high) {
  for (uint64_t page = low; page < high;) {
    uint64_t run = g_armed.armed_ahead(page, high - page);
    if (run != 0) {
      g_armed.clear(page, page + run);
      open_pages(page, run, per_thread());
    }
    page += run != 0 ? run : ArmedPages::kPageBytes;
  }
}

void HeapGate::close_all() {
  if (per_thread() || ended_.load(std::memory_order_acquire)) return;
  closed_ = true;
  for_each_armed_run([](uint64_t low, uint64_t bytes) { protect(low, bytes, PROT_NONE); });
}

void HeapGate::open_all() {
  closed_ = false;
  bool keys = per_thread();
  for_each_armed_run([keys](uint64_t low, uint64_t bytes) { open_pages(low, bytes, keys); });
}

bool HeapGate::is_fault(int signal, const siginfo_t* info) const {
  if (signal != SIGSEGV) return false;
  if (!per_thread()) return info->si_code == SEGV_ACCERR;
  // The kernel looks the key up after the fault (arch/x86/mm/fault.c, bad_area_access_error): 0 if another thread
  // has opened the page meanwhile.
  auto key = static_cast<int>(info->si_pkey);
  return info->si_code == SEGV_PKUERR && (g_key.owns(key) || key == 0);
}

void HeapGate::pass_in_frame(void* ucontext) const {
  if (per_thread()) g_key.allow_in_frame(ucontext);
}

void HeapGate::stop_in_frame(void* ucontext) const {
  if (per_thread()) g_key.deny_in_frame(ucontext);
}

void HeapGate::open_page(uint64_t page) const { protect(page, ArmedPages::kPageBytes, kOpen); }

void HeapGate::close_page(uint64_t page) const {
  if (closed_ && g_armed.armed(page)) protect(page, ArmedPages::kPageBytes, PROT_NONE);
}

int32_t watched_offset() { return thread_offset(&t_watched); }

void watch_this_thread(uint64_t low, uint64_t bytes) {
  t_watched.low = low;
  t_own_bytes = bytes;
  if (t_agent_depth == 0) t_watched.bytes = bytes;
}

AgentScope::AgentScope() : was_armed_(g_gate.per_thread() && g_key.denied_here()) {
  ++t_agent_depth;
  t_watched.bytes = 0;
  if (was_armed_) g_key.allow_here();
}

void AgentScope::leave(bool armed_after) {
  if (left_) return;
  left_ = true;
  if (--t_agent_depth == 0) t_watched.bytes = t_own_bytes;
  if (g_gate.per_thread() && g_key.allocated() && armed_after) g_key.deny_here();
}

}  // namespace classaccess
