// How the heap is closed: the one seam between the rest and the two back ends.
//
// pkey      a protection key; rights are per thread, so only recorded threads trap.
// mprotect  PROT_NONE for every thread of the process; opened for the collector
//           between GarbageCollectionStart and Finish. Threads that are not recorded
//           trap too and are executed without a record.
// Context: as each function says.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace classaccess {

class HeapGate {
 public:
  enum class BackEnd : uint8_t { kPkey, kMprotect };

  // Start only. Empty string, or why this back end cannot be had here.
  const char* choose(BackEnd back_end);
  bool per_thread() const { return back_end_ == BackEnd::kPkey; }
  void release();
  // The recording is over and the program goes on: opens all pages, and what is committed
  // from now on stays open, until another recording closes the heap: its handler is
  // installed before begin_again(). Under HeapMappingsLock.
  void end();
  void begin_again();

  // A range was committed (the mmap interposer) or left to the back end anew: closes it
  // if the heap is closed now. 0 or errno.
  int close_range(uint64_t low, uint64_t high);

  // heap=old|young, after a collection: closes what is committed of [low, high), or
  // closes it no longer.
  void close_committed(uint64_t low, uint64_t high);
  void open_range(uint64_t low, uint64_t high);

  // Whole heap; start, end and pauses. With keys the pages are closed from their commit
  // on, and only threads are armed; close_all is then a no-op and open_all gives the
  // pages their default key back. Also signal handler (system calls only).
  void close_all();
  void open_all();

  // Signal handler: is this the fault of a closed page?
  bool is_fault(int signal, const siginfo_t* info) const;

  // Signal handler: lets the interrupted thread pass from now on / not any more. Keys only.
  void pass_in_frame(void* ucontext) const;
  void stop_in_frame(void* ucontext) const;

  // Signal handler, mprotect only: opens the page for a single step / closes it again.
  void open_page(uint64_t page) const;
  void close_page(uint64_t page) const;

 private:
  BackEnd back_end_ = BackEnd::kPkey;
  std::atomic<bool> closed_{false};  // mprotect: pages are PROT_NONE now
  std::atomic<bool> ended_{false};
};

extern HeapGate g_gate;

// The agent's own work on a thread (JVMTI callbacks) is neither trapped nor recorded
// while in scope.
class AgentScope {
 public:
  AgentScope();
  // `armed_after`: closed for this thread afterwards; without it as it was before.
  void leave(bool armed_after);
  ~AgentScope() { leave(was_armed_); }
  bool was_armed() const { return was_armed_; }
  AgentScope(const AgentScope&) = delete;
  AgentScope& operator=(const AgentScope&) = delete;

 private:
  bool was_armed_;
  bool left_ = false;
};

// What the probes of libraries ask, by FS: the window (the heap) in which this thread's accesses
// are recorded; of no bytes: none are.
struct WatchedWindow {
  uint64_t low = 0, bytes = 0;
};
extern __thread WatchedWindow t_watched __attribute__((tls_model("initial-exec")));
int32_t watched_offset();  // from the FS base: the same on every thread

// The current thread is recorded from now on, or not any more (0, 0); in an AgentScope when
// that ends. Its own signal handler, or callbacks.
void watch_this_thread(uint64_t low, uint64_t bytes);

// While it lives this thread's library probes record nothing: another's code runs for us.
class UnwatchedScope {
 public:
  UnwatchedScope() : bytes_(t_watched.bytes) { t_watched.bytes = 0; }
  ~UnwatchedScope() { t_watched.bytes = bytes_; }
  UnwatchedScope(const UnwatchedScope&) = delete;
  UnwatchedScope& operator=(const UnwatchedScope&) = delete;

 private:
  uint64_t bytes_;
};

// Nested AgentScopes of this thread; with mprotect the handler records nothing then.
extern __thread uint32_t t_agent_depth __attribute__((tls_model("initial-exec")));

}  // namespace classaccess
