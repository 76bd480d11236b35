#include "agent/store/writer.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <exception>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/raw_syscall.h"
#include "agent/base/wake.h"
#include "agent/store/database.h"
#include "agent/store/drain.h"
#include "agent/store/java_names.h"

namespace classaccess {
namespace {

constexpr uint32_t kIdleMs = 25;        // nothing to do
constexpr uint32_t kQuietMs = 5;        // a trickle of records
constexpr uint64_t kTickNs = 10000000;  // at most so often
constexpr uint64_t kQuietRecords = 512;
constexpr int kLastQuietRounds = 5;
constexpr uint64_t kLastPauseNs = 1000000;
constexpr int kJoinSeconds = 10;

// A write past RLIMIT_FSIZE raises SIGXFSZ before it fails with EFBIG: blocked for the
// guard's life and taken off again, so that it never reaches the application.
class FileSizeSignalGuard {
 public:
  FileSizeSignalGuard() {
    sigemptyset(&mask_);
    sigaddset(&mask_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &mask_, &old_);
  }
  ~FileSizeSignalGuard() {
    timespec none = {};
    if (!was_pending_) sigtimedwait(&mask_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t mask_, old_;
  bool was_pending_;
};

std::string utc_text(int64_t unix_ns) {
  time_t seconds = unix_ns / 1000000000;
  tm parts;
  gmtime_r(&seconds, &parts);
  char text[40];
  size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + n, sizeof(text) - n, ".%06dZ", static_cast<int>(unix_ns % 1000000000 / 1000));
  return text;
}

int64_t unix_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

}  // namespace

struct Writer::Impl {
  WriterOptions options;
  WriterSources sources;
  RunInfo run;
  Database database;
  std::unique_ptr<Drain> drain;
  pid_t pid = getpid();
  pthread_t thread = {};
  bool started = false;
  std::atomic<bool> stop{false}, flush{false};
  std::atomic<uint32_t> flushed{0};

  bool reported = false;

  bool write_run_row();
  template <typename Step>
  auto guarded(Step&& step) -> decltype(step());
  uint64_t round();
  void loop();
  void end();
  bool finish();
  void fail_if_failed();
  void tell(LiveCounts::State state);
  static void* thread_main(void* self);
};

Writer::Writer() : impl_(std::make_unique<Impl>()) {}

Writer::~Writer() { stop(); }

std::string Writer::open(const WriterOptions& options) {
  if (impl_ == nullptr) return "the writer was closed";
  FileSizeSignalGuard guard;
  impl_->options = options;
  return impl_->database.create(options.path, options.overwrite);
}

bool Writer::Impl::write_run_row() {
  Statement update;
  if (!update.prepare(database,
                      "UPDATE run SET started_at=?, status='running', pid=?, command=?, jvm_version=?, jvm_vendor=?, "
                      "gc=?, heap_start=?, heap_size=?, page_size=?, protection=?, options=?, agent_version=?")) {
    return false;
  }
  int64_t age = run.started_ns != 0 ? static_cast<int64_t>(monotonic_ns() - run.started_ns) : 0;
  update.bind_text(1, utc_text(unix_ns() - age));
  update.bind(2, pid);
  update.bind_text(3, utf8_from_modified(run.command));
  update.bind_text(4, utf8_from_modified(run.jvm_version));
  update.bind_text(5, utf8_from_modified(run.jvm_vendor));
  update.bind_text(6, utf8_from_modified(run.gc));
  update.bind(7, static_cast<int64_t>(run.heap_start));
  update.bind(8, static_cast<int64_t>(run.heap_size));
  update.bind(9, static_cast<int64_t>(run.page_size));
  update.bind_text(10, utf8_from_modified(run.protection));
  update.bind_text(11, utf8_from_modified(run.options));
  update.bind_text(12, utf8_from_modified(run.agent_version));
  return update.run();
}

std::string Writer::start(const WriterSources& sources, const RunInfo& run) {
  if (impl_ == nullptr || !impl_->database.is_open()) return "the database is not open";
  if (impl_->started) return "the writer runs already";
  FileSizeSignalGuard guard;
  Impl& impl = *impl_;
  impl.sources = sources;
  impl.run = run;
  if (impl.run.started_ns == 0) impl.run.started_ns = monotonic_ns();
  impl.drain = std::make_unique<Drain>(impl.database, impl.sources, impl.options, impl.run);
  if (!impl.write_run_row() || !impl.drain->prepare()) return impl.database.error();

  // Born with every asynchronous signal blocked: none of the application's may land here.
  sigset_t all, old;
  sigfillset(&all);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, signal);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = pthread_create(&impl.thread, &attributes, Impl::thread_main, &impl);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) return std::string("cannot start the writer thread: ") + strerror(error);
  impl.started = true;
  return "";
}

void Writer::stop() {
  if (impl_ == nullptr || !impl_->started) return;
  if (impl_->pid != getpid()) return forget_in_child();
  impl_->stop.store(true, std::memory_order_release);
  wake_writer();
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += kJoinSeconds;
  int error = pthread_timedjoin_np(impl_->thread, nullptr, &until);
  if (error != 0) {
    raw_log(LogLevel::kError, "the writer of '%s' did not finish in %d s; the file holds what was committed",
            impl_->database.path().c_str(), kJoinSeconds);
    pthread_detach(impl_->thread);
    (void)impl_.release();  // the thread still uses it
    return;
  }
  impl_->started = false;
}

bool Writer::discard() {
  if (impl_ == nullptr || impl_->started) return false;
  impl_.reset();
  return true;
}

bool Writer::flush(int milliseconds) {
  if (impl_ == nullptr || !impl_->started || impl_->pid != getpid()) return false;
  uint32_t before = impl_->flushed.load(std::memory_order_acquire);
  impl_->flush.store(true, std::memory_order_release);
  wake_writer();
  for (int i = 0; i < milliseconds && impl_->flushed.load(std::memory_order_acquire) == before; ++i) usleep(1000);
  return impl_->flushed.load(std::memory_order_acquire) != before && !impl_->database.failed();
}

void Writer::put_page_contents(PageContents contents) {
  if (impl_ == nullptr || !impl_->started || impl_->pid != getpid()) return;
  impl_->drain->pages().put_contents(std::move(contents));
}

void Writer::abandon() {
  if (impl_ == nullptr || impl_->started || !impl_->database.is_open() || impl_->pid != getpid()) return;
  FileSizeSignalGuard guard;
  if (impl_->drain != nullptr) impl_->drain->finalize();
  impl_->database.remove();
}

void Writer::forget_in_child() {
  if (impl_ == nullptr) return;
  (void)impl_.release();  // not even freed: closing would drop the parent's locks
}

void* Writer::Impl::thread_main(void* self) {
  prctl(PR_SET_NAME, "classaccess-wri");
  auto* writer = static_cast<Impl*>(self);
  writer->tell(LiveCounts::kRecording);
  writer->database.wait_for_locks(0);
  writer->loop();
  writer->end();
  writer->tell(writer->reported ? LiveCounts::kFailed : LiveCounts::kNone);
  return nullptr;
}

// Other processes wait too: no FUTEX_PRIVATE_FLAG.
void Writer::Impl::tell(LiveCounts::State state) {
  if (sources.live == nullptr) return;
  sources.live->state.store(state, std::memory_order_release);
  raw_syscall(SYS_futex, reinterpret_cast<long>(&sources.live->state), FUTEX_WAKE, INT32_MAX);
}

// Out of memory, most likely: an error like a full disk, never the end of the program.
template <typename Step>
auto Writer::Impl::guarded(Step&& step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::exception& problem) {
    database.fail(problem.what());
  } catch (...) {
    database.fail("the writer failed");
  }
  return {};
}

uint64_t Writer::Impl::round() {
  uint64_t work = guarded([this] { return drain->round(); });
  fail_if_failed();
  return work;
}

void Writer::Impl::loop() {
  bool want_flush = false;
  uint64_t next_tick = 0;
  while (!stop.load(std::memory_order_acquire)) {
    uint32_t seen = wakes_seen();
    uint64_t now = monotonic_ns();
    if (sources.tick != nullptr && now >= next_tick) {
      next_tick = now + kTickNs;
      guarded([this] { return sources.tick(), true; });
    }
    want_flush |= flush.exchange(false, std::memory_order_acq_rel);
    uint64_t work = round();
    if (want_flush && (guarded([this] { return !database.failed() && drain->commit(); }) || database.failed())) {
      want_flush = false;
      fail_if_failed();
      flushed.fetch_add(1, std::memory_order_release);
    }
    if (work == 0) {
      sleep_until_wake(seen, kIdleMs);
    } else if (work < kQuietRecords) {
      sleep_until_wake(seen, kQuietMs);
    }
  }
}

void Writer::Impl::end() {
  const uint64_t give_up = monotonic_ns() + options.limits.end_seconds * 1000000000u;
  // A thread whose ring is full looks again every 0.1 ms: until none has come for a while.
  for (int quiet = 0; quiet < kLastQuietRounds && monotonic_ns() < give_up;) {
    quiet = round() != 0 || (drain->full() && !reported) ? 0 : quiet + 1;
    if (quiet != 0 || drain->full()) raw_sleep(kLastPauseNs);
  }
  while (!reported && !guarded([this] { return finish(); })) {
    if (!database.failed() && monotonic_ns() >= give_up) database.fail("another process keeps it locked");
    fail_if_failed();
    if (!reported) raw_sleep(kLastPauseNs);
  }
  fail_if_failed();
  g_call_rows.store(false, std::memory_order_relaxed);
}

bool Writer::Impl::finish() {
  if (!drain->finish() || !database.begin()) return false;
  Statement end;
  if (!end.prepare(database, "UPDATE run SET status='complete', ended_at=?")) return false;
  end.bind_text(1, utc_text(unix_ns()));
  if (!end.run()) return false;
  end.finalize();
  if (!database.commit()) return false;
  drain->finalize();
  database.close_complete();
  return true;
}

// Full disk, I/O error, no memory, locked for too long: one message, and the application
// goes on without us.
void Writer::Impl::fail_if_failed() {
  if (!database.failed() || reported) return;
  reported = true;
  g_call_rows.store(false, std::memory_order_relaxed);  // nobody takes them any more
  g_recording.store(RecordingState::kClosed, std::memory_order_release);
  raw_log(LogLevel::kError, "%s; recording has ended, the program goes on (what was committed is readable)",
          database.error().c_str());
  tell(LiveCounts::kFailed);
  drain->finalize();
  database.close_failed();
}

}  // namespace classaccess
