// The writer: one thread that drains every ring into the database.
//
// It never attaches to the VM, calls no JNI or JVMTI, takes no VM lock, touches no
// heap and no VM metadata: all names come from the tables. So a thread that waits
// for it with a full ring cannot deadlock with it. Every 0.2 to 0.4 s it commits
// one transaction with rows, counts and the dictionary rows they need.
//
// On a full disk or an I/O error: one message, g_recording becomes kClosed, the file is
// closed (what was committed is readable) and the rings are drained to nowhere. So it is
// when memory runs out. Another process's lock on the database is waited for, one
// warning, while the rings are drained into memory (WriterLimits).
// Context: open/start/stop: JVMTI callbacks; wake_writer: any thread and signal
// handler; the rest: the writer's own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/base/wake.h"
#include "agent/fault/site_table.h"
#include "agent/fault/thread_pool.h"
#include "agent/fault/virtual_threads.h"
#include "agent/heap/class_table.h"
#include "agent/heap/gc_log.h"
#include "agent/heap/method_table.h"
#include "agent/store/page_rows.h"
#include "classaccess/control.h"

namespace classaccess {

// What the writer reads; all of it outlives the writer.
struct WriterSources {
  ThreadPool* threads = nullptr;
  const VirtualThreads* virtual_threads = nullptr;  // null: there are none
  const ClassTable* classes = nullptr;
  const MethodTable* methods = nullptr;
  const SiteTable* sites = nullptr;
  const GcLog* collections = nullptr;
  const VmLayout* layout = nullptr;
  // Puts what a thread's probes have recorded into its ring, and calls empty_ring whenever
  // that is full. Null: there are no probes.
  void (*collect_probes)(ThreadState* thread, void (*empty_ring)(void* context, ThreadState*), void* context) = nullptr;
  bool calls = false;          // calls= was given: the call sink has something
  LiveCounts* live = nullptr;  // of the control file; null: nobody looks
  // Called each round, every 25 ms at least, on the writer's thread. May be null. Holds to
  // what the writer holds to.
  void (*tick)() = nullptr;
};

// How long and with how much memory a lock of another process is waited for; the
// recording ends with a message after that.
struct WriterLimits {
  uint64_t backlog_bytes = 256u << 20;  // rows; then the threads wait with full rings
  uint64_t full_seconds = 30;           // so long at most: the holder may be waiting for them
  uint64_t end_seconds = 6;             // at the end
};

struct WriterOptions {
  std::string path;  // already expanded (%p, %t)
  bool overwrite = false;
  uint64_t max_events = 1000000;  // UINT64_MAX: all, 0: off
  bool values = false;
  WriterLimits limits = {};
};

// The `run` row. Everything but pid and times may be filled in before start().
struct RunInfo {
  std::string command, jvm_version, jvm_vendor, gc, protection, options, agent_version;
  uint64_t heap_start = 0, heap_size = 0, page_size = 4096;
  uint64_t started_ns = 0;  // CLOCK_MONOTONIC of run.started_at
};

class Writer {
 public:
  Writer();
  ~Writer();

  // Creates the database file with its schema (status `running`). Empty string, or
  // the reason it failed; then nothing is left behind. Called in Agent_OnLoad,
  // before anything is armed.
  std::string open(const WriterOptions& options);

  // Writes the run row and starts the thread. Empty string or the reason.
  std::string start(const WriterSources& sources, const RunInfo& run);

  // Drains what is left, writes counters, status `complete`, closes: one file
  // remains. Called in VMDeath in state kEnding: threads that wait with a full ring get
  // theirs in. Bounded: gives up waiting after a few seconds with a message.
  void stop();

  // Drains and commits what is there now, and waits for it (at most `milliseconds`, also for
  // a lock). False: it is not committed. Any thread, not a signal handler.
  bool flush(int milliseconds = 2000);

  // What lives on the pages now, for the next commit. Any thread, not a signal handler.
  void put_page_contents(PageContents contents);

  // After stop: gives its memory back. False: its thread still runs, and uses the sources.
  bool discard();

  // Removes the file of a recording that never started (start of the JVM failed).
  void abandon();

  // After fork, in the child: forget the database without touching it.
  void forget_in_child();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace classaccess
