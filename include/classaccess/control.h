// The control file: how the `classaccess` command and an agent talk.
//
// A memfd named `classaccess-control` of the traced process, mapped shared by both sides. The
// command finds it among /proc/PID/fd, so the kernel decides who may (ptrace access), nothing
// lies on a disk, and it is gone when the process is. One command at a time: whoever holds
// flock(2) on it, which the kernel gives back when he dies.
//
// A request: the holder writes `command` and `arguments` and increments `requests` (futex).
// The agent's control thread carries it out, writes `status` and `answer` and sets
// `answered` to the same number (futex). A request whose sender has died is carried out all
// the same; the next sender waits for its answer first.
//
// `classaccess run` makes the file before the JVM runs: `start_options` is what the injected
// library gives -agentpath, `stage` how far it has come (futex).
#pragma once

#include <atomic>
#include <cstdint>

namespace classaccess {

constexpr char kControlFileName[] = "classaccess-control";
constexpr char kControlMagic[8] = {'C', 'L', 'A', 'C', 'T', 'L', '0', '2'};

enum class ControlCommand : uint32_t { kNone = 0, kStatus, kSnapshot, kStart, kStop, kDetach };

// Of a JVM that `classaccess run` starts.
enum class InjectionStage : uint32_t {
  kWaiting = 0,  // the library is not loaded
  kLoaded,       // it is, and waits for JNI_CreateJavaVM
  kExecuting,    // the launcher starts itself anew: inject again
  kCreating,     // JNI_CreateJavaVM is called with -agentpath
  kFailed,       // `answer` says why
};

// How far the recording is, for a live line (agent/cli/live_line.h). Written by the agent: counts
// by the writer thread: what has reached it. (Hot probes count in slots of their own, which are handed on when their
// thread's buffer is full, at a collection and at the end: the counts run behind then, never ahead.)
struct LiveCounts {
  enum State : uint32_t { kNone = 0, kRecording, kFailed, kEnding };  // kEnding: the JVM
  std::atomic<uint32_t> state;                                        // futex
  std::atomic<uint64_t> accesses, page_touches, calls;
  std::atomic<uint64_t> probes;
  std::atomic<uint64_t> database_bytes;
};

// The live line on a terminal, as far as others who write there must know of it. One process draws, which has its id in
// `drawer`. Whoever writes to the terminal first takes the line away (agent/base/terminal_line.h).
struct TerminalLine {
  enum Shown : uint32_t { kNothing = 0, kDrawing, kDrawn };
  std::atomic<int32_t> drawer;     // 0: nobody
  std::atomic<uint64_t> terminal;  // st_rdev
  std::atomic<uint32_t> shown;
  std::atomic<uint32_t> cursor_inside;  // 1: what the program wrote last there has no end of line
};

struct ControlBlock {
  static constexpr uint32_t kTextBytes = 64 << 10;

  char magic[8];         // kControlMagic, written last
  uint32_t bytes;        // sizeof(ControlBlock) of the writer
  int32_t owner_pid;     // as the owner sees itself; a forked child inherits the file, not the owner
  uint64_t owner_start;  // starttime of /proc/PID/stat, ticks since boot
  char agent_version[32];

  std::atomic<uint32_t> requests;
  std::atomic<uint32_t> answered;
  ControlCommand command;
  uint32_t status;             // of the answer: 0 success, 1 failure
  char arguments[kTextBytes];  // kStart: an option string; "": those of the recording before
  char answer[kTextBytes];

  LiveCounts live;
  TerminalLine line;

  std::atomic<uint32_t> stage;  // InjectionStage
  char start_options[kTextBytes];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

}  // namespace classaccess
