#include "tests/jvm/control_fixture.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace classaccess {

std::string classaccess_command() {
  const char* given = std::getenv("CLASSACCESS_COMMAND");
  return given != nullptr ? given : CLASSACCESS_COMMAND;
}

void ControlFixture::start_program(const JavaRun& run) {
  process_.emplace(spec(run));
  bool ready = wait_until([&] { return read_text(path("stdout")).find("READY\n") != std::string::npos; }, 120);
  ASSERT_TRUE(ready) << read_text(path("stdout")) << read_text(path("stderr"));
}

void ControlFixture::round(int number) {
  std::ofstream(path("go" + std::to_string(number))) << "go";
  std::string wanted = "ROUND " + std::to_string(number) + "\n";
  bool done =
      wait_until([&] { return process_->ended() || read_text(path("stdout")).find(wanted) != std::string::npos; }, 120);
  ASSERT_TRUE(done && !process_->ended()) << "no " << wanted << read_text(path("stderr"));
}

ProcessResult ControlFixture::finish_program() {
  std::ofstream(path("end")) << "end";
  ProcessResult result = process_->wait();
  EXPECT_FALSE(result.timed_out);
  return result;
}

ProcessSpec ControlFixture::command_spec(const std::vector<std::string>& words) {
  ProcessSpec spec;
  spec.command = {classaccess_command()};
  spec.command.insert(spec.command.end(), words.begin(), words.end());
  spec.folder = path("command" + std::to_string(++commands_));
  std::filesystem::create_directories(spec.folder);
  spec.limit_seconds = 120;
  return spec;
}

std::string ControlFixture::expect_command(int status, const std::vector<std::string>& words) {
  ProcessResult result = run(command_spec(words));
  EXPECT_EQ(result.status, status) << words.empty() << result.out << result.err
                                   << "of: " << (words.empty() ? "" : words[0]);
  return result.out + result.err;
}

std::vector<std::string> ControlFixture::long_options(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string piece; std::getline(in, piece, ',');) {
    size_t equals = piece.find('=');
    words.push_back("--" + piece.substr(0, equals));
    words.push_back(piece.substr(equals + 1));
  }
  return words;
}

void ControlFixture::expect_round(const std::string& name, int number, int threads, const std::string& status) {
  SCOPED_TRACE(name);
  Database db(path(name), true);
  ASSERT_TRUE(db.is_open()) << db.error();
  EXPECT_EQ(db.text("SELECT status FROM run"), status);
  std::string counts =
      "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN class c ON c.id = a.class_id JOIN field f ON f.id = "
      "a.field_id JOIN site s ON s.id = a.site_id WHERE s.kind <> 'gc' AND c.name = 'Rounds$Box' AND f.name = 'value' "
      "AND a.op = ";
  EXPECT_EQ(db.integer(counts + "'store'"), int64_t{threads} * (100 + number));
  EXPECT_EQ(db.integer(counts + "'load'"), int64_t{threads} * (100 + number));
  if (status != "complete") return;
  EXPECT_EQ(db.diagnostic("dropped"), 0);
  db.expect_whole();
}

Leftovers ControlFixture::leftovers() const {
  Leftovers left;
  std::string proc = "/proc/" + pid();
  std::ifstream smaps(proc + "/smaps");
  for (std::string line; std::getline(smaps, line);) {
    if (line.rfind("ProtectionKey:", 0) == 0 && std::atoi(line.c_str() + 14) != 0) ++left.keys;
  }
  std::ifstream status(proc + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigCgt:", 0) == 0) {
      left.handlers = __builtin_popcountll(std::strtoull(line.c_str() + 7, nullptr, 16) & 0x7fffffff);
    }
    if (line.rfind("RssAnon:", 0) == 0) left.private_kb = std::atoll(line.c_str() + 8);
  }
  std::error_code ec;
  for (const auto& task : std::filesystem::directory_iterator(proc + "/task", ec)) {
    std::string comm = read_text(task.path().string() + "/comm");
    left.agent_thread |= comm.rfind("classaccess", 0) == 0;
    left.writer_thread |= comm.rfind("classaccess-wri", 0) == 0;
  }
  for (const auto& fd : std::filesystem::directory_iterator(proc + "/fd", ec)) {
    std::string to = std::filesystem::read_symlink(fd.path(), ec).string();
    left.control_file |= to.rfind("/memfd:classaccess-control", 0) == 0;
  }
  return left;
}

int ControlFixture::jumps_to_probes() const {
  struct Range {
    uint64_t low, high;
  };
  std::vector<Range> rooms, code;
  std::ifstream maps("/proc/" + pid() + "/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range{};
    char rights[5] = "";
    if (sscanf(line.c_str(), "%lx-%lx %4s", &range.low, &range.high, rights) != 3) continue;
    if (std::string(rights) == "rwxp") code.push_back(range);
    if (std::string(rights) == "r-xs" && line.find("/dev/zero") != std::string::npos) rooms.push_back(range);
  }
  std::ifstream memory("/proc/" + pid() + "/mem", std::ios::binary);
  int found = 0;
  for (const Range& range : code) {
    std::string bytes(range.high - range.low, '\0');
    memory.clear();
    memory.seekg(static_cast<std::streamoff>(range.low));
    memory.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    for (size_t i = 0; i + 5 <= bytes.size(); ++i) {
      int32_t displacement;
      std::memcpy(&displacement, bytes.data() + i + 1, 4);
      uint64_t target = range.low + i + 5 + static_cast<uint64_t>(int64_t{displacement});
      if (static_cast<uint8_t>(bytes[i]) != 0xe9) continue;
      for (const Range& room : rooms) {
        unsigned char start[3] = {};
        if (target < room.low || target + 3 > room.high) continue;
        memory.clear();
        memory.seekg(static_cast<std::streamoff>(target));
        memory.read(reinterpret_cast<char*>(start), 3);
        if (start[0] == 0xe9) {  // where few addresses can be reached: a jump to the probe
          int32_t further = 0;
          memory.seekg(static_cast<std::streamoff>(target + 1));
          memory.read(reinterpret_cast<char*>(&further), 4);
          memory.seekg(static_cast<std::streamoff>(target + 5 + static_cast<uint64_t>(int64_t{further})));
          memory.read(reinterpret_cast<char*>(start), 3);
        }
        if (start[0] == 0x64 && (start[1] & 0xf0) == 0x40 && start[2] == 0x89) ++found;
      }
    }
  }
  return found;
}

int64_t ControlFixture::changed_library_bytes() const {
  std::ifstream maps("/proc/" + pid() + "/maps");
  std::ifstream memory("/proc/" + pid() + "/mem", std::ios::binary);
  int64_t changed = 0;
  for (std::string line; std::getline(maps, line);) {
    uint64_t low = 0, high = 0, offset = 0;
    char rights[5] = "", name[4096] = "";
    if (sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %4095s", &low, &high, rights, &offset, name) != 5) continue;
    if (std::string(rights) != "r-xp" || name[0] != '/') continue;
    std::string text(high - low, '\0'), original(high - low, '\0');
    memory.clear();
    memory.seekg(static_cast<std::streamoff>(low));
    memory.read(text.data(), static_cast<std::streamsize>(text.size()));
    EXPECT_EQ(memory.gcount(), static_cast<std::streamsize>(text.size())) << line;
    std::ifstream file(name, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(original.data(), static_cast<std::streamsize>(original.size()));
    // Behind the file's end the page is zeros, as `original` is.
    for (size_t i = 0; i < text.size(); ++i) changed += text[i] != original[i] ? 1 : 0;
  }
  return changed;
}

void ControlFixture::expect_nothing_left() const {
  EXPECT_EQ(jumps_to_probes(), 0);
  EXPECT_EQ(changed_library_bytes(), 0);
  Leftovers left = leftovers();
  EXPECT_EQ(left.keys, 0);
  EXPECT_FALSE(left.writer_thread);
  // HotSpot has none for SIGTRAP.
  std::ifstream status("/proc/" + pid() + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigCgt:", 0) != 0) continue;
    EXPECT_EQ(std::strtoull(line.c_str() + 7, nullptr, 16) >> (SIGTRAP - 1) & 1, 0u) << "a SIGTRAP handler";
  }
  std::ifstream maps("/proc/" + pid() + "/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("memfd:classaccess-code"), std::string::npos) << line;
  }
}

}  // namespace classaccess
