// The JDK's tools and a debugger on a traced JVM: they work, and the counts stay exact.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/ticker_file.h"

namespace classaccess {
namespace {

class Tools : public JavaTest {
 protected:
  // A traced ticker that has begun to count, until end().
  std::unique_ptr<Process> start(const Jdk& jdk) {
    JavaRun java{jdk,
                 {"-XX:+UseSerialGC", "-Xmx64m"},
                 "classes=Ticker$Counter,out=" + path("run.db"),
                 {"Ticker", path("ticks"), "200", path("end")},
                 "",
                 240};
    auto process = std::make_unique<Process>(spec(java));
    EXPECT_TRUE(wait_until([this] { return !ticker_lines(path("ticks"), 0).empty(); }, 60));
    return process;
  }

  ProcessResult end(Process& process) {
    std::ofstream(path("end")) << "now";
    return process.wait();
  }

  ProcessResult tool(const std::vector<std::string>& command) {
    ProcessSpec process;
    process.command = command;
    process.limit_seconds = 60;
    process.folder = path("tool");
    std::filesystem::create_directories(process.folder);
    return run(process);
  }

  void expect_exact() {
    Database db(path("run.db"), true);
    db.expect_whole();
    EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
    for (int thread : {0, 1}) {
      EXPECT_EQ(db.integer("SELECT sum(a.count) FROM access_count a JOIN field f ON f.id = a.field_id JOIN thread t ON "
                           "t.id = a.thread_id WHERE f.name = 'ticks' AND a.op = 'store' AND t.name = 'ticker-" +
                           std::to_string(thread) + "'"),
                ticker_lines(path("ticks"), thread).back().stores);
    }
    EXPECT_EQ(db.diagnostic("dropped"), 0);
  }

  void forget() {
    for (const char* name : {"run.db", "ticks.0", "ticks.1", "heap.hprof", "end"}) std::filesystem::remove(path(name));
  }
};

TEST_F(Tools, OfTheJdkWork) {
  for (const Jdk& jdk : {oldest_jdk(), newest_jdk()}) {
    if (!file_exists(jdk.home + "/bin/jcmd")) continue;
    forget();
    std::unique_ptr<Process> process = start(jdk);
    if (HasFailure()) return;
    const std::string pid = std::to_string(process->pid()), bin = jdk.home + "/bin/";
    struct Tool {
      std::vector<std::string> command;
      const char* says;
    };
    const Tool kTools[] = {{{bin + "jstack", pid}, "\"ticker-0\""},
                           {{bin + "jcmd", pid, "Thread.print"}, "\"ticker-1\""},
                           {{bin + "jcmd", pid, "GC.class_histogram"}, "Ticker$Counter"},
                           {{bin + "jcmd", pid, "GC.heap_dump", path("heap.hprof")}, "Heap dump file created"}};
    for (const Tool& each : kTools) {
      ProcessResult result = tool(each.command);
      expect_status(result, 0);
      EXPECT_NE(result.out.find(each.says), std::string::npos) << jdk << " " << shell_line(each.command) << result.out;
    }
    kill(process->pid(), SIGQUIT);
    EXPECT_TRUE(
        wait_until([this] { return read_text(path("stdout")).find("Full thread dump") != std::string::npos; }, 60));
    ProcessResult result = end(*process);
    expect_done(result);
    EXPECT_NE(result.out.find("Full thread dump"), std::string::npos) << result.out;
    EXPECT_GT(std::filesystem::file_size(path("heap.hprof")), 100000u);
    expect_exact();
  }
}

TEST_F(Tools, ADebuggerAttachesAndDetaches) {
  const std::string gdb = "/usr/bin/gdb";
  if (!file_exists(gdb)) GTEST_SKIP() << "gdb is not installed";
  std::unique_ptr<Process> process = start(oldest_jdk());
  if (HasFailure()) return;
  for (int i = 0; i < 2; ++i) {
    ProcessResult result =
        tool({gdb, "-nx", "-batch", "-iex", "set auto-load off", "-ex", "handle SIGSEGV SIGTRAP nostop noprint pass",
              "-ex", "info threads", "-ex", "detach", "-p", std::to_string(process->pid())});
    if (result.err.find("ptrace") != std::string::npos) GTEST_SKIP() << "ptrace is refused here: " << result.err;
    expect_status(result, 0);
    EXPECT_NE(result.out.find("ticker-0"), std::string::npos) << result.out << result.err;
  }
  expect_done(end(*process));
  expect_exact();
}

}  // namespace
}  // namespace classaccess
