// The file itself: creating, refusing, overwriting, leaving exactly one, fork.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/store/database.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

class DatabaseFile : public ::testing::Test {
 protected:
  std::string directory = make_directory();
  std::string path = directory + "/run.db";
  World world;

  void write_file(const std::string& name, const std::string& text) {
    int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  void expect_nothing_beside() {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) EXPECT_FALSE(exists(path + suffix)) << suffix;
  }
};

TEST_F(DatabaseFile, ExactlyOneFileAfterANormalEnd) {
  Writer writer;
  ASSERT_EQ(writer.open({path, false, 0, false}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  EXPECT_TRUE(exists(path + "-wal"));
  writer.stop();
  EXPECT_TRUE(exists(path));
  expect_nothing_beside();
  EXPECT_EQ(query_one(path, "PRAGMA integrity_check"), "ok");
}

TEST_F(DatabaseFile, AnExistingFileIsRefusedAndUntouched) {
  write_file(path, "mine");
  Writer writer;
  EXPECT_EQ(writer.open({path, false, 0, false}),
            "'" + path + "' exists already: choose another out=FILE or give overwrite=on");
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 4);
  expect_nothing_beside();
}

TEST_F(DatabaseFile, OverwriteReplacesIt) {
  write_file(path, "mine");
  write_file(path + "-wal", "left over");
  Writer writer;
  ASSERT_EQ(writer.open({path, true, 0, false}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  writer.stop();
  EXPECT_EQ(query_one(path, "SELECT status FROM run"), "complete");
}

TEST_F(DatabaseFile, ADatabaseAnotherProcessWritesIsNotOverwritten) {
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  pid_t child = fork();
  if (child == 0) {
    Writer writer;
    char c = writer.open({path, false, 0, false}).empty() ? 'y' : 'n';
    (void)!write(ready[1], &c, 1);
    (void)!read(done[0], &c, 1);
    _exit(0);
  }
  char c = 0;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  EXPECT_EQ(c, 'y');
  Writer writer;
  EXPECT_EQ(writer.open({path, true, 0, false}),
            "cannot overwrite '" + path + "': process " + std::to_string(child) + " is using it");
  EXPECT_TRUE(exists(path));
  ASSERT_EQ(write(done[1], &c, 1), 1);
  waitpid(child, nullptr, 0);
}

TEST_F(DatabaseFile, ReasonsOfFailure) {
  Writer writer;
  EXPECT_EQ(writer.open({directory + "/no/run.db", false, 0, false}),
            "cannot create '" + directory + "/no/run.db': directory '" + directory + "/no': No such file or directory");
  EXPECT_EQ(writer.open({directory + "/", false, 0, false}),
            "cannot create '" + directory + "/': it names a directory");
  mkdir(path.c_str(), 0755);
  EXPECT_EQ(writer.open({path, true, 0, false}), "cannot overwrite '" + path + "': not a regular file");
}

TEST_F(DatabaseFile, ADirectoryThatIsNotWritable) {
  chmod(directory.c_str(), 0555);
  bool is_root = geteuid() == 0;  // who may write everywhere
  if (is_root && seteuid(65534) != 0) GTEST_SKIP() << "cannot become another user";
  Writer writer;
  EXPECT_EQ(writer.open({path, false, 0, false}), "cannot create '" + path + "': Permission denied");
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_FALSE(exists(path));
  chmod(directory.c_str(), 0755);
}

TEST_F(DatabaseFile, AbandonRemovesIt) {
  Writer writer;
  ASSERT_EQ(writer.open({path, false, 0, false}), "");
  EXPECT_TRUE(exists(path));
  writer.abandon();
  EXPECT_FALSE(exists(path));
  expect_nothing_beside();
}

TEST_F(DatabaseFile, ARelativePathAndAChangedDirectory) {
  char before[4096];
  ASSERT_NE(getcwd(before, sizeof(before)), nullptr);
  ASSERT_EQ(chdir(directory.c_str()), 0);
  Writer writer;
  ASSERT_EQ(writer.open({"file:run.db", false, 0, false}), "");
  ASSERT_EQ(chdir("/"), 0);
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  writer.stop();
  EXPECT_TRUE(exists(directory + "/file:run.db"));
  ASSERT_EQ(chdir(before), 0);
}

// Stands for a file system that cannot share memory: the -shm file cannot be made.
TEST_F(DatabaseFile, WithoutSharedMemoryARollbackJournalServes) {
  mkdir((path + "-shm").c_str(), 0755);
  ::testing::internal::CaptureStderr();
  Writer writer;
  std::string reason = writer.open({path, false, UINT64_MAX, false});
  std::string message = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(reason, "");
  EXPECT_NE(message.find("using a rollback journal"), std::string::npos) << message;
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  ThreadState* thread = world.add_thread("main");
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
  writer.flush();
  EXPECT_EQ(query_one(path, "SELECT count(*) FROM access"), "1");
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
  writer.stop();
  EXPECT_EQ(query_one(path, "SELECT status, (SELECT count(*) FROM access) FROM run"), "complete|2");
  EXPECT_FALSE(exists(path + "-wal"));
  EXPECT_FALSE(exists(path + "-journal"));
  rmdir((path + "-shm").c_str());
}

TEST_F(DatabaseFile, AForkChildTouchesNothing) {
  Writer writer;
  ASSERT_EQ(writer.open({path, false, UINT64_MAX, false}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  ThreadState* thread = world.add_thread("main");
  pid_t child = fork();
  if (child == 0) {
    writer.forget_in_child();
    writer.stop();
    writer.flush();
    writer.abandon();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
  writer.stop();
  EXPECT_EQ(query_one(path, "SELECT status, (SELECT count(*) FROM access) FROM run"), "complete|1");
  EXPECT_EQ(query_one(path, "PRAGMA integrity_check"), "ok");
}

TEST_F(DatabaseFile, DescriptorsAreNotInherited) {
  Writer writer;
  ASSERT_EQ(writer.open({path, false, 0, false}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  std::string command = "ls -l /proc/self/fd | grep -c " + directory;
  FILE* pipe = popen(command.c_str(), "r");
  int inherited = -1;
  ASSERT_EQ(fscanf(pipe, "%d", &inherited), 1);
  pclose(pipe);
  EXPECT_EQ(inherited, 0);
  writer.stop();
}

TEST_F(DatabaseFile, AReaderThatStaysDoesNotHangTheEnd) {
  Writer writer;
  ASSERT_EQ(writer.open({path, false, UINT64_MAX, false}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  World::push(world.add_thread("main"), world.access(world.add_class("A", 16), kHeap, 0, 8, Op::kLoad));
  writer.flush();
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM event;", nullptr, nullptr, nullptr), SQLITE_OK);
  ::testing::internal::CaptureStderr();
  writer.stop();
  std::string message = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(message.find("a reader has '" + path + "' open"), std::string::npos) << message;
  EXPECT_EQ(query_one(path, "SELECT status, (SELECT count(*) FROM access) FROM run"), "complete|1");
  sqlite3_close(reader);
}

}  // namespace
}  // namespace classaccess
