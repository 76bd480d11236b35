// The file cannot grow (RLIMIT_FSIZE, in a child): one message, no signal, no hang; what
// was committed is readable.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/counters.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

void limit_file_size(uint64_t bytes) {
  rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Exit status of `body` in a child; its standard error in *message.
template <typename Body>
int in_child(std::string* message, Body&& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    signal(SIGXFSZ, SIG_DFL);  // as in a program that does not expect it
    alarm(60);
    _exit(body());
  }
  close(ends[1]);
  char buffer[4096];
  ssize_t n;
  while ((n = read(ends[0], buffer, sizeof(buffer))) > 0) message->append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(DiskFull, WhileRecording) {
  std::string path = make_directory() + "/full.db", message;
  int status = in_child(&message, [&] {
    World world;
    Writer writer;
    if (!writer.open({path, false, UINT64_MAX, false}).empty()) return 1;
    if (!writer.start(world.sources(), world.run()).empty()) return 2;
    ClassInfo* order = world.add_class("com/acme/Order", 32);
    ThreadState* thread = world.add_thread("main");
    g_recording.store(RecordingState::kOn);
    for (int i = 0; i < 1000; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
    writer.flush();
    if (query_number(path, "SELECT count(*) FROM access") != 1000) return 3;
    limit_file_size(2 << 20);
    // 6 MB of rows: far more than fits. push() returns only if the ring is drained.
    for (int i = 0; i < 200000; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
    writer.flush();
    if (g_recording.load() != RecordingState::kClosed) return 4;
    for (int i = 0; i < 20000; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
    writer.stop();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(message,
            "classaccess: cannot write '" + path +
                "': file size limit reached (File too large); recording has ended, the program goes on (what was "
                "committed is readable)\n");
  EXPECT_EQ(query_one(path, "PRAGMA integrity_check"), "ok");
  EXPECT_GE(query_number(path, "SELECT count(*) FROM access"), 1000);
  EXPECT_EQ(query_one(path, "SELECT status FROM run"), "running");
}

// A file system that is really full, so that the -shm file cannot grow either.
TEST(DiskFull, SmallFileSystem) {
  std::string directory = make_directory(), path = directory + "/full.db", message;
  constexpr int kNoMount = 77;
  int status = in_child(&message, [&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", directory.c_str(), "tmpfs", 0, "size=3m") != 0) {
      return kNoMount;
    }
    World world;
    Writer writer;
    if (!writer.open({path, false, UINT64_MAX, false}).empty()) return 1;
    if (!writer.start(world.sources(), world.run()).empty()) return 2;
    ClassInfo* order = world.add_class("com/acme/Order", 32);
    ThreadState* thread = world.add_thread("main");
    for (int i = 0; i < 400000; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
    writer.stop();
    if (g_recording.load() != RecordingState::kClosed) return 3;
    if (query_one(path, "PRAGMA integrity_check") != "ok") return 4;
    return query_number(path, "SELECT count(*) FROM access") >= 0 ? 0 : 5;
  });
  if (status == kNoMount) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(status, 0);
  EXPECT_NE(message.find("No space left on device; recording has ended"), std::string::npos) << message;
}

TEST(DiskFull, AtCreation) {
  std::string path = make_directory() + "/full.db", message;
  int status = in_child(&message, [&] {
    limit_file_size(4096);
    Writer writer;
    std::string reason = writer.open({path, false, UINT64_MAX, false});
    (void)!write(2, reason.data(), reason.size());
    return reason.empty() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_NE(message.find("'" + path + "': file size limit reached"), std::string::npos) << message;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) EXPECT_FALSE(exists(path + suffix)) << suffix;
}

}  // namespace
}  // namespace classaccess
