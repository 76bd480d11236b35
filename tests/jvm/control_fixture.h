// The fixture of tests that give commands to a JVM that runs java-harness/Rounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "classaccess/control.h"
#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {

// What of the agent a process shows to the kernel.
struct Leftovers {
  int keys = 0;      // mappings with a protection key
  int handlers = 0;  // signals with a handler
  bool agent_thread = false;
  bool writer_thread = false;
  bool control_file = false;
  int64_t private_kb = 0;
};

class ControlFixture : public JavaTest {
 protected:
  // Until it has printed READY.
  void start_program(const JavaRun& run);
  std::string pid() const { return std::to_string(process_->pid()); }
  void round(int number);
  ProcessResult finish_program();

  ProcessSpec command_spec(const std::vector<std::string>& words);
  // Runs the command; its status must be this. Both streams.
  std::string expect_command(int status, const std::vector<std::string>& words);
  // key=value,key=value as long options.
  static std::vector<std::string> long_options(const std::string& text);

  // The recording has exactly this round, of all threads.
  void expect_round(const std::string& name, int number, int threads, const std::string& status = "complete");
  Leftovers leftovers() const;
  // Jumps in the code cache that lead to the start of a probe. (A probe begins with a store to
  // thread-local storage: 64 REX 89.)
  int jumps_to_probes() const;
  // Bytes of the libraries' code in memory that differ from their files.
  int64_t changed_library_bytes() const;
  // No jump, no key, no handler of ours, no writer.
  void expect_nothing_left() const;

  std::optional<Process> process_;
  int commands_ = 0;
};

// The classaccess command of this build.
std::string classaccess_command();

}  // namespace classaccess
