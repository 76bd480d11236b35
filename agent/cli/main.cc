// The classaccess command (interface.md section 3). Exit status: 0 success, 1 failure, 2 bad
// usage; of `run` the JVM's.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <list>
#include <string>

#include "agent/cli/agent_library.h"
#include "agent/cli/control_client.h"
#include "agent/cli/doctor.h"
#include "agent/cli/hotspot_attach.h"
#include "agent/cli/launch.h"
#include "agent/cli/live_line.h"
#include "agent/cli/option_text.h"
#include "agent/cli/report_command.h"
#include "agent/cli/target_process.h"
#include "agent/jvmti/options.h"
#include "agent/report/report.h"

namespace classaccess {
namespace {

constexpr int kFailure = 1, kUsage = 2;
constexpr int kShort = 10;  // seconds: finding the control file

int fail(const std::string& problem, int status = kFailure) {
  fprintf(stderr, "classaccess: %s\n", problem.c_str());
  return status;
}

int print(bool ok, const std::string& text) {
  if (!ok) return fail(text);
  fputs(text.c_str(), stdout);
  return 0;
}

struct Arguments {
  int pid = 0;
  int seconds = 60;
  std::string agent;
  GivenOptions options;
  std::vector<std::string> command;
  bool no_progress = false;
};

// Whatever is wrong with the options is wrong before anything happens. Empty or the message.
std::string check_options(const GivenOptions& given) {
  Options parsed;
  return parse_options(option_text(given).c_str(), &parsed);
}

int simple(const Arguments& arguments, ControlCommand command) {
  ControlClient client(arguments.pid);
  if (client.open(kShort) != ControlClient::Found::kYes) return fail(client.problem());
  std::string answer;
  bool ok = client.ask(command, "", arguments.seconds, &answer);
  return print(ok, answer);
}

int start(const Arguments& arguments) {
  std::string problem = check_options(arguments.options);
  if (!problem.empty()) return fail(problem, kUsage);
  ControlClient client(arguments.pid);
  if (client.open(kShort) != ControlClient::Found::kYes) return fail(client.problem());
  std::string answer;
  bool ok = client.ask(ControlCommand::kStart, option_text(arguments.options), arguments.seconds, &answer);
  return print(ok, answer);
}

// Once the answer is there the control thread is about to end.
void wait_for_thread_end(int pid) {
  TargetProcess target(pid);
  for (int tries = 0; tries < 200 && target.has_thread("classaccess-ctl"); ++tries) usleep(5000);
}

int detach(const Arguments& arguments) {
  int status = simple(arguments, ControlCommand::kDetach);
  if (status == 0) wait_for_thread_end(arguments.pid);
  return status;
}

volatile sig_atomic_t g_interrupted = 0;

// Only where the user has a prompt to go back to: a command in a script goes on when it has attached.
bool wants_live_line(const Arguments& arguments) {
  return !arguments.no_progress && getpgrp() == getpid() && isatty(STDIN_FILENO) != 0 && LiveLine::possible();
}

void show_live_line(ControlClient* client, int pid) {
  client->unlock();
  struct sigaction action = {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  switch (LiveLine(client->block(), pid).watch(true, &g_interrupted)) {
    case LiveLine::End::kInterrupted:
      fprintf(stderr, "classaccess: the recording goes on; `classaccess stop %d` ends it\n", pid);
      break;
    case LiveLine::End::kEnded: fprintf(stderr, "classaccess: the recording has ended\n"); break;
    case LiveLine::End::kGone: fprintf(stderr, "\nclassaccess: process %d has ended\n", pid); break;
    case LiveLine::End::kNotHere: break;
  }
}

int attach(const Arguments& arguments) {
  std::string problem = check_options(arguments.options);
  if (!problem.empty()) return fail(problem, kUsage);
  TargetProcess target(arguments.pid);
  problem = target.check_jvm();
  if (!problem.empty()) return fail(problem);
  bool loaded = false;
  {
    ControlClient there(arguments.pid);
    ControlClient::Found found = there.open(kShort);
    if (found == ControlClient::Found::kProblem) return fail(there.problem());
    if (found == ControlClient::Found::kNone) {
      std::string library = find_agent_library(arguments.agent, &problem);
      if (library.empty()) return fail(problem);
      if (access((target.folder() + "/root" + library).c_str(), R_OK) != 0) {
        return fail("process " + std::to_string(arguments.pid) + " cannot read '" + library +
                    "' (another container?): copy it to where it can, and give --agent FILE");
      }
      problem = attach_library(target, library, "start=manual");
      if (!problem.empty()) return fail(problem);
      loaded = true;
    }
  }
  ControlClient client(arguments.pid);
  if (client.open(kShort) != ControlClient::Found::kYes) return fail(client.problem());
  auto manual = arguments.options.find("start");
  if (manual != arguments.options.end() && manual->second == "manual") {
    return print(true, "attached; `classaccess start " + std::to_string(arguments.pid) + "` starts the recording\n");
  }
  std::string options = option_text(arguments.options);
  std::string answer, ignored;
  bool ok = client.ask(ControlCommand::kStart, options.empty() ? "start=now" : options, arguments.seconds, &answer);
  if (!ok && loaded && client.ask(ControlCommand::kDetach, "", arguments.seconds, &ignored)) {
    wait_for_thread_end(arguments.pid);
  }
  int status = print(ok, answer);
  if (!ok || !wants_live_line(arguments)) return status;
  fflush(stdout);
  show_live_line(&client, arguments.pid);
  return status;
}

int run(const Arguments& arguments) {
  std::string problem = check_options(arguments.options);
  if (!problem.empty()) return fail(problem, kUsage);
  std::string library = find_agent_library(arguments.agent, &problem);
  if (library.empty()) return fail(problem);
  return fail(launch(arguments.command, library, option_text(arguments.options), !arguments.no_progress));
}

int doctor(DoctorPlaces places) {
  places.jdks = jdks_of_environment();
  std::vector<Finding> findings = examine(places, real_probe());
  fputs(findings_text(findings, terminal_width()).c_str(), stdout);
  return exit_status(findings);
}

void add_options(CLI::App* command, Arguments* arguments) {
  for (const OptionRow& row : option_rows()) {
    if (!row.available) continue;
    std::string key = row.key;
    command
        ->add_option_function<std::string>(
            "--" + key, [arguments, key](const std::string& value) { arguments->options[key] = value; }, row.meaning)
        ->type_name(row.values)
        ->default_str(row.fallback)
        ->group("Options of the agent");
  }
}

void add_progress(CLI::App* command, Arguments* arguments) {
  command->add_flag("--no-progress", arguments->no_progress, "no live line on the terminal");
}

void add_pid(CLI::App* command, Arguments* arguments) {
  command->add_option("PID", arguments->pid, "process id of the JVM")->required()->check(CLI::PositiveNumber);
  command->add_option("--timeout", arguments->seconds, "seconds to wait for the JVM's answer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

int run_command(int argc, char** argv) {
  CLI::App app{"Records which classes, fields and array elements a Java program touches.", "classaccess"};
  app.set_version_flag("--version", CLASSACCESS_VERSION);
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "this text");
  Arguments arguments;
  int status = 0;
  auto add = [&](const char* name, const char* description, std::function<int()> what) {
    CLI::App* command = app.add_subcommand(name, description);
    command->callback([&status, what] { status = what(); });
    return command;
  };

  CLI::App* command = add("run", "starts a Java program with a recording; becomes it", [&] { return run(arguments); });
  command->add_option("--agent", arguments.agent, "libclassaccess.so, if it is not beside this command");
  add_progress(command, &arguments);
  add_options(command, &arguments);
  command->add_option("COMMAND", arguments.command, "what to run, behind --: java and its arguments")->required();
  command->footer("classaccess run --classes Foo -- java -jar app.jar");

  command = add("attach", "starts a recording in a JVM that runs", [&] { return attach(arguments); });
  add_pid(command, &arguments);
  command->add_option("--agent", arguments.agent, "libclassaccess.so, if it is not beside this command");
  add_progress(command, &arguments);
  add_options(command, &arguments);

  command = add("detach", "ends the recording and leaves nothing in the JVM but the library",
                [&] { return detach(arguments); });
  add_pid(command, &arguments);

  command = add("start", "starts a recording in a JVM that has the agent", [&] { return start(arguments); });
  add_pid(command, &arguments);
  add_options(command, &arguments);
  command->footer("Without options: those of the recording before.");

  command = add("stop", "ends the recording; its database is complete",
                [&] { return simple(arguments, ControlCommand::kStop); });
  add_pid(command, &arguments);

  command = add("status", "says what is being recorded", [&] { return simple(arguments, ControlCommand::kStatus); });
  add_pid(command, &arguments);

  command = add("snapshot", "returns when all that has been recorded so far is in the database",
                [&] { return simple(arguments, ControlCommand::kSnapshot); });
  add_pid(command, &arguments);

  std::function<int()> report;
  command = add("report", "what a recording shows, as tables", [&] { return report(); });
  report = add_report_options(command);

  DoctorPlaces places;
  command = add("doctor", "what this machine and its JVMs offer, and what to do about what is missing",
                [&] { return doctor(places); });
  command->add_option("--folder", places.folder, "where the database will be")->capture_default_str();
  command->add_option("--agent", places.agent, "libclassaccess.so, if it is not beside this command");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return status;
}

}  // namespace
}  // namespace classaccess

int main(int argc, char** argv) { return classaccess::run_command(argc, argv); }
