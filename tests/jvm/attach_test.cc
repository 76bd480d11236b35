// The agent attached to a JVM that runs already, by jcmd.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/jvm/database.h"
#include "tests/jvm/expectations.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

int64_t private_kb(const std::string& proc) {
  std::ifstream file(proc + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::strtoll(line.c_str() + 8, nullptr, 10);
  }
  return 0;
}

int64_t shared_heap_kb(const std::string& proc) {
  int64_t kb = 0;
  std::error_code ec;
  for (const auto& fd : std::filesystem::directory_iterator(proc + "/fd", ec)) {
    struct stat status;
    if (std::filesystem::read_symlink(fd.path(), ec).string().rfind("/memfd:classaccess-heap", 0) == 0 &&
        stat(fd.path().c_str(), &status) == 0) {
      kb += status.st_blocks / 2;
    }
  }
  return kb;
}

// KB of memory that a process has: private pages, and those of the shared heap, which are
// mapped twice (so not its resident set). 0 if it changed too much meanwhile to be told.
int64_t memory_kb(pid_t pid) {
  std::string proc = "/proc/" + std::to_string(pid);
  int64_t before = private_kb(proc), shared = shared_heap_kb(proc), after = private_kb(proc);
  return std::abs(after - before) < 4096 ? after + shared : 0;
}

// The most that memory_kb gives until stopped.
class MemoryPeak {
 public:
  explicit MemoryPeak(pid_t pid)
      : thread_([this, pid] {
          while (!stop_) peak_ = std::max(peak_, memory_kb(pid));
        }) {}
  int64_t stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return peak_;
  }
  ~MemoryPeak() { stop(); }

 private:
  std::atomic<bool> stop_{false};
  int64_t peak_ = 0;
  std::thread thread_;
};

class AttachTest : public CountsTest {
 protected:
  // Starts a program that prints GATE and waits for the file gate().
  void start(const JavaRun& run) {
    std::remove(path("stdout").c_str());
    process_.emplace(spec(run));
    jdk_ = run.jdk;
    bool waits = wait_until([&] { return read_text(path("stdout")).find("GATE\n") != std::string::npos; }, 60);
    ASSERT_TRUE(waits) << read_text(path("stdout")) << read_text(path("stderr"));
  }
  std::string gate() const { return path("gate"); }

  // What jcmd prints.
  std::string attach(const std::string& options) {
    ProcessSpec jcmd;
    jcmd.command = {jdk_.home + "/bin/jcmd", std::to_string(process_->pid()), "JVMTI.agent_load", agent_library(),
                    "\"" + options + "\""};
    jcmd.limit_seconds = 60;
    jcmd.folder = folder() + "/jcmd";
    std::filesystem::create_directories(jcmd.folder);
    return run(jcmd).out;
  }
  static bool attached(const std::string& out) { return out.find("return code: 0") != std::string::npos; }

  ProcessResult finish() {
    std::ofstream(gate()) << "go";
    ProcessResult result = process_->wait();
    EXPECT_FALSE(result.timed_out);
    return result;
  }

  std::optional<Process> process_;
  Jdk jdk_;
};

struct AttachMode {
  Jdk jdk;
  Execution execution;
  Collector collector;
  std::string options;
  std::string name() const {
    return test_name(jdk.name + "_" + collector_flags(collector).back().substr(8) + execution_flags(execution)[0] +
                     options);
  }
};
std::ostream& operator<<(std::ostream& out, const AttachMode& mode) { return out << mode.name(); }

std::vector<AttachMode> attach_modes() {
  std::vector<AttachMode> modes;
  for (const Jdk& jdk : installed_jdks()) {
    bool newest = jdk.home == newest_jdk().home;
    for (Collector c :
         {Collector::kSerial, Collector::kParallel, Collector::kG1, Collector::kShenandoah, Collector::kEpsilon}) {
      modes.push_back({jdk, Execution::kInterpreted, c, ""});
      if (full_run()) modes.push_back({jdk, Execution::kC2, c, ""});
    }
    if (!full_run()) modes.push_back({jdk, Execution::kC2, newest ? Collector::kG1 : Collector::kParallel, ""});
    modes.push_back(
        {jdk, Execution::kInterpreted, newest ? Collector::kParallel : Collector::kSerial, ",protect=mprotect"});
    modes.push_back({jdk, Execution::kInterpreted, newest ? Collector::kSerial : Collector::kG1, ",twin=off"});
  }
  return modes;
}

class LateAttach : public AttachTest, public ::testing::WithParamInterface<AttachMode> {};

// Objects, threads and compiled code are older than the agent.
TEST_P(LateAttach, CountsAreExactFromThenOn) {
  const AttachMode& mode = GetParam();
  std::vector<std::string> flags = execution_flags(mode.execution);
  for (const std::string& flag : collector_flags(mode.collector)) flags.push_back(flag);
  flags.push_back("-Xmx256m");
  if (!jdk_accepts(mode.jdk, flags)) GTEST_SKIP() << mode.jdk.home << " does not take " << mode.name();
  JavaRun plain{mode.jdk, flags, std::nullopt, {"counts.ExactCounts", "4", "3", "0"}, "", 120};
  ProcessResult told = run(plain);
  expect_done(told);
  JavaRun gated = plain;
  gated.flags.push_back("-Dgate=" + gate());
  gated.program.push_back("silent");
  ASSERT_NO_FATAL_FAILURE(start(gated));
  std::string out = attach("classes=held.**,out=" + path("run.db") + mode.options);
  EXPECT_TRUE(attached(out)) << out;
  ProcessResult result = finish();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "sum"), check_value(told.out, "sum"));
  if (HasFailure()) return;
  Database db(path("run.db"), true);
  ASSERT_TRUE(db.is_open()) << db.error();
  db.expect_whole();
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
  Counts counts = read_counts(db);
  int64_t seen = 0, compared = 0;
  for (const Expectation& e : parse_expectations(told.out)) {
    // The main thread did its part before the gate.
    if (e.class_name.rfind("held.", 0) != 0 || e.thread == "main" || e.part == "length") continue;
    if (mode.execution != Execution::kInterpreted && e.kind != "volatile") continue;
    EXPECT_EQ(counts.of(e), e.count) << e.key();
    ++compared;
  }
  for (const auto& [key, count] : counts.all) seen += key.rfind("held.", 0) == 0 ? count : 0;
  EXPECT_GT(compared, 50);
  EXPECT_GT(seen, 10000);
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  EXPECT_EQ(db.diagnostic("unresolved"), 0) << db.unresolved_sites();
  EXPECT_EQ(db.integer("SELECT count(*) FROM thread WHERE name IS NULL OR name = ''"), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, LateAttach, ::testing::ValuesIn(attach_modes()),
                         [](const auto& param) { return param.param.name(); });

class LateAttachMemory : public AttachTest, public ::testing::WithParamInterface<Collector> {};

// The heap is never in memory twice; threads in JNI critical sections meanwhile lose nothing.
TEST_P(LateAttachMemory, IsNotDoubledAndNothingIsLost) {
  for (const Jdk& jdk : installed_jdks()) {
    // Epsilon and Shenandoah with the newest, the others with the oldest.
    bool newest = GetParam() == Collector::kEpsilon || GetParam() == Collector::kShenandoah;
    if (!full_run() && GetParam() != Collector::kG1 && jdk.home != (newest ? newest_jdk() : oldest_jdk()).home)
      continue;
    SCOPED_TRACE(jdk.name);
    std::vector<std::string> flags = collector_flags(GetParam());
    flags.insert(flags.end(), {"-Xms700m", "-Xmx700m"});
    if (!jdk_accepts(jdk, flags)) continue;
    std::remove(gate().c_str());
    ASSERT_NO_FATAL_FAILURE(start(JavaRun{jdk, flags, std::nullopt, {"Attached", "240", "2", gate()}, "", 120}));
    int64_t before = memory_kb(process_->pid());
    MemoryPeak peak(process_->pid());
    std::string out = attach("classes=no.such.Class,log=info,out=" + path(jdk.name + ".db"));
    EXPECT_TRUE(attached(out)) << out;
    int64_t most = peak.stop();
    int64_t after = memory_kb(process_->pid());
    std::cout << jdk.name << ": " << before << " kB, at most " << most << " kB, then " << after << " kB\n";
    EXPECT_GT(before, 300 << 10);
    EXPECT_GT(after, 300 << 10);
    EXPECT_LT(most - before, 100 << 10);  // a chunk, and the agent's own tables
    ProcessResult result = finish();
    expect_done(result);
    EXPECT_EQ(check_value(result.out, "wrong"), 0);
    EXPECT_EQ(check_value(result.out, "different"), 0);
    if (HasFailure()) return;
    Database db(path(jdk.name + ".db"), true);
    EXPECT_GT(db.diagnostic("traps"), 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(Collectors, LateAttachMemory,
                         ::testing::Values(Collector::kSerial, Collector::kG1, Collector::kShenandoah,
                                           Collector::kEpsilon),
                         [](const auto& param) { return test_name(collector_flags(param.param).back().substr(8)); });

class AttachRefusals : public AttachTest {};

// A refusal leaves nothing behind: the next attach works, and one beside it is refused.
TEST_F(AttachRefusals, ThenItWorksThenASecondIsRefused) {
  JavaRun run{newest_jdk(), {"-XX:+UseSerialGC", "-Xmx64m", "-XX:+EnableDynamicAgentLoading"},
              std::nullopt, {"Attached", "1", "1", gate()},
              "",           120};
  ASSERT_NO_FATAL_FAILURE(start(run));
  std::ofstream(path("exists.db")) << "x";
  EXPECT_FALSE(attached(attach("nonsense=1,out=" + path("run.db"))));
  EXPECT_FALSE(attached(attach("help")));
  EXPECT_FALSE(attached(attach("out=" + path("exists.db"))));
  EXPECT_FALSE(attached(attach("heap=1000-2000,out=" + path("run.db"))));
  EXPECT_FALSE(file_exists(path("run.db")));
  std::string first = attach("classes=byte[],events=off,out=" + path("run.db"));
  EXPECT_TRUE(attached(first)) << first;
  EXPECT_FALSE(attached(attach("out=" + path("second.db"))));
  EXPECT_FALSE(file_exists(path("second.db")));
  ProcessResult result = finish();
  expect_done(result);
  EXPECT_EQ(check_value(result.out, "wrong"), 0);
  for (const char* message :
       {"classaccess: unknown option 'nonsense'", "exists.db", "option 'heap': 1000-2000 is outside the heap",
        "classaccess: a recording is active in this JVM already, since 2", "KEY=VALUE"}) {
    EXPECT_NE(result.err.find(message), std::string::npos) << message << " in " << result.err;
  }
  Database db(path("run.db"), true);
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
}

}  // namespace
}  // namespace classaccess
