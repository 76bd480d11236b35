// A fault in the agent's own code: it is named with the version, and what was recorded is readable.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/jvm/control_fixture.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

class OwnCrash : public ControlFixture {
 protected:
  // Where the agent's control thread waits: behind the system call, in the agent's text.
  uint64_t waiting_pc() const {
    std::string tasks = "/proc/" + pid() + "/task";
    for (const auto& task : fs::directory_iterator(tasks)) {
      if (read_text(task.path() / "comm") != "classaccess-ctl\n") continue;
      std::istringstream words(read_text(task.path() / "syscall"));
      std::string last;
      for (std::string word; words >> word;) last = word;
      return strtoull(last.c_str(), nullptr, 16);
    }
    return 0;
  }
  bool in_agent(uint64_t pc) const {
    std::istringstream maps(read_text("/proc/" + pid() + "/maps"));
    for (std::string line; std::getline(maps, line);) {
      uint64_t begin = 0, end = 0;
      if (sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && pc >= begin && pc < end) {
        return line.ends_with("/libclassaccess.so");
      }
    }
    return false;
  }
};

TEST_F(OwnCrash, IsNamedAndLeavesTheDatabase) {
  const std::string database = path("own.db");
  JavaRun program{
      oldest_jdk(), {"-XX:-CreateCoredumpOnCrash"}, "classes=Rounds*,out=" + database, {"Rounds", "1", folder()}, ""};
  start_program(program);
  round(1);
  expect_command(0, {"snapshot", pid()});
  uint64_t pc = 0;
  ASSERT_TRUE(wait_until([&] { return in_agent(pc = waiting_pc()); }, 30)) << std::hex << pc;
  // mov eax, [0x10], which comes next.
  const unsigned char load[] = {0x8b, 0x04, 0x25, 0x10, 0, 0, 0};
  std::ofstream memory("/proc/" + pid() + "/mem", std::ios::in | std::ios::out | std::ios::binary);
  memory.seekp(static_cast<std::streamoff>(pc));
  memory.write(reinterpret_cast<const char*>(load), sizeof(load));
  memory.close();
  ASSERT_TRUE(memory);
  expect_command(1, {"status", pid(), "--timeout", "20"});
  ProcessResult result = process_->wait();
  expect_status(result, 1);  // without a core file HotSpot exits
  EXPECT_NE(result.err.find("classaccess: the agent's own code has failed: SIGSEGV at +0x"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find(", address 0x10, version "), std::string::npos) << result.err;
  Database db(database, false);
  EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
  EXPECT_GT(db.integer("SELECT sum(count) FROM access_count"), 0);
  db.expect_whole();
}

}  // namespace
}  // namespace classaccess
