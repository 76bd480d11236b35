// The pages for users against the sources: each option stands in the manual page, each message that
// troubleshooting.md quotes is one that the sources have, and the other way round, links lead somewhere.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace classaccess {
namespace {

namespace fs = std::filesystem;

const fs::path kTop = CLASSACCESS_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string help_of(const std::string& command) {
  FILE* out = popen((std::string(CLASSACCESS_COMMAND) + " " + command + " --help").c_str(), "re");
  std::string text;
  for (int c; (c = getc(out)) != EOF;) text += static_cast<char>(c);
  EXPECT_EQ(pclose(out), 0) << command;
  return text;
}

std::vector<std::string> all_matches(const std::string& text, const char* expression) {
  std::vector<std::string> found;
  std::regex pattern(expression, std::regex::multiline);
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  from += begin.size();
  return text.substr(from, text.find(end, from) - from);
}

TEST(ManualPage, HasEachCommandAndOption) {
  const std::string page = read(kTop / "agent/doc/classaccess.1");
  const std::string of_agent = between(page, "\n.Sh AGENT OPTIONS\n", "\n.Sh ");
  std::vector<std::string> commands = all_matches(between(help_of(""), "Subcommands:\n", "\n\n"), "^  ([a-z]+) ");
  ASSERT_GE(commands.size(), 9u);
  commands.push_back("");
  for (const std::string& command : commands) {
    std::string title = "\n.Ss classaccess" + (command.empty() ? "" : " " + command) + "\n";
    std::string part = between(page + "\n.S", title, "\n.S");
    EXPECT_FALSE(part.empty()) << "no section " << title;
    // "A.Sx AGENT OPTIONS" ends the part early, behind the sentence that leads there.
    if (part.ends_with("All of")) part += of_agent;
    std::string help = help_of(command);
    std::vector<std::string> options = all_matches(help, "^  (?:-h,)?--([a-z-]+)");
    EXPECT_FALSE(options.empty()) << command;
    for (const std::string& option : options) {
      EXPECT_TRUE(std::regex_search(part, std::regex("(^|\n)\\.It .*(Fl |, )-" + option + "\\b")))
          << command << " --" << option << " is not in the manual page";
    }
    for (const std::string& section : all_matches(between(help, "\nSections:\n", "\n\n"), "^  ([a-z-]+) ")) {
      EXPECT_NE(part.find("\n.It Cm " + section + "\n"), std::string::npos) << "section " << section;
    }
    // Nothing that there is no longer.
    for (const std::string& option : all_matches(part, "^\\.It Fl -([a-z-]+)")) {
      EXPECT_NE(help.find("--" + option), std::string::npos) << command << " has no --" << option;
    }
  }
}

TEST(ManualPage, NamesTheAgentsDefaults) {
  const std::string page = read(kTop / "agent/doc/classaccess.1");
  for (const std::string& line : all_matches(help_of("run"), "^  (--[a-z]+ [^ ]+=[^ \n]+)")) {
    std::string option = between(line, "--", " ");
    std::string fallback = line.substr(line.rfind('=') + 1);
    std::string entry = between(page + "\n.It", "\n.It Fl -" + option + " ", "\n.It");
    EXPECT_NE(entry.find(fallback), std::string::npos) << option << " with default " << fallback << ":\n" << entry;
  }
}

// C++ source as one text in which adjacent literals are joined and messages below warnings left out.
std::string joined_source(const fs::path& path) {
  std::string text = std::regex_replace(read(path), std::regex("\"\\s*\n\\s*\""), "");
  return std::regex_replace(text, std::regex("LogLevel::k(Info|Debug),\\s*\"[^\"]*\""), "");
}

std::vector<std::string> literals(const std::string& source) {
  std::vector<std::string> found = all_matches(source, "\"((?:[^\"\\\\\n]|\\\\.)*)\"");
  for (std::string& literal : found) {
    literal = std::regex_replace(literal, std::regex("\\\\n"), "\n");
    literal = std::regex_replace(literal, std::regex("\\\\\""), "\"");
  }
  return found;
}

std::vector<fs::path> agent_sources() {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::recursive_directory_iterator(kTop / "agent")) {
    if (entry.path().extension() == ".cc" || entry.path().extension() == ".h") sources.push_back(entry.path());
  }
  return sources;
}

// What a page may quote: "**`message`**", line breaks as spaces.
std::vector<std::string> quoted_messages() {
  std::string page = read(kTop / "agent/doc/troubleshooting.md");
  page = std::regex_replace(page, std::regex("\n  +"), " ");
  return all_matches(page, "\\*\\*`([^\n]*?)`\\*\\*");
}

std::vector<std::string> pieces(const std::string& message, const std::string& separator) {
  std::vector<std::string> found;
  size_t from = 0;
  while (true) {
    size_t to = message.find(separator, from);
    found.push_back(message.substr(from, to - from));
    if (to == std::string::npos) return found;
    from = to + separator.size();
  }
}

// A message is a chain of literals and values, whose joints are values or colons.
TEST(Troubleshooting, QuotesWhatTheSourcesSay) {
  std::string all;
  for (const fs::path& path : agent_sources()) {
    for (const std::string& literal : literals(joined_source(path))) {
      all += std::regex_replace(literal, std::regex("%(s|d|u|lu|ld|lx)"), "\x01") + "\x01";
    }
  }
  std::vector<std::string> messages = quoted_messages();
  ASSERT_GE(messages.size(), 80u);
  for (const std::string& message : messages) {
    auto is_said = [&](const std::string& piece) {
      return all.find(std::regex_replace(piece, std::regex("^[ ':)]+|[ ':)`]+$"), "")) != std::string::npos;
    };
    for (const std::string& piece : pieces(message, "…")) {
      if (is_said(piece)) continue;
      for (const std::string& part : pieces(piece, ": ")) {
        EXPECT_TRUE(is_said(part)) << "no message of the sources has `" << part << "` of\n" << message;
      }
    }
  }
}

// Every warning and error of the agent, and what the files say that talk to users.
TEST(Troubleshooting, CoversTheMessages) {
  std::string quoted;
  for (const std::string& message : quoted_messages()) quoted += message + "\n";
  auto expect_covered = [&](const fs::path& path, const std::string& literal) {
    std::string text = std::regex_replace(literal, std::regex("%(s|d|u|lu|ld|lx)"), "\n");
    for (const std::string& line : pieces(text, "\n")) {
      std::string piece = std::regex_replace(line, std::regex("^(classaccess: )?[ ':;]*|[ ':(`]+$"), "");
      if (std::count(piece.begin(), piece.end(), ' ') < 3) continue;
      EXPECT_NE(quoted.find(piece), std::string::npos)
          << fs::relative(path, kTop) << " says `" << piece << "`: explain it in agent/doc/troubleshooting.md";
    }
  };
  size_t warnings = 0;
  for (const fs::path& path : agent_sources()) {
    if (path.filename().string().starts_with("heap_verify")) continue;  // the verifying build's
    for (const std::string& literal :
         all_matches(joined_source(path), "raw_log\\(\\s*LogLevel::k(?:Error|Warn),\\s*\"([^\"]*)\"")) {
      expect_covered(path, literal);
      ++warnings;
    }
  }
  EXPECT_GE(warnings, 20u);
  for (const char* file : {"cli/agent_library.cc", "cli/control_client.cc", "cli/hotspot_attach.cc", "cli/injector.cc",
                           "cli/launch.cc", "cli/target_process.cc", "hotspot/layout_probe.cc", "hotspot/lookup.cc",
                           "hotspot/vm_structs.cc", "jvmti/control_thread.cc", "jvmti/entry.cc", "jvmti/late_attach.cc",
                           "jvmti/recording.cc", "jvmti/recording_prepare.cc", "protect/heap_mappings.cc",
                           "protect/protection_key.cc", "report/recording_file.cc", "store/database.cc"}) {
    fs::path path = kTop / "agent" / file;
    for (const std::string& literal : literals(joined_source(path))) {
      static const std::regex other(
          "SELECT|PRAGMA|INSERT|BEGIN|sqlite_|%\\*|%7s|verify:|^layout: |is not in the VM's thread list");
      if (!std::regex_search(literal, other)) expect_covered(path, literal);
    }
  }
}

TEST(Pages, LinksLeadSomewhere) {
  std::vector<fs::path> pages = {kTop / "README.md", kTop / "agent/README.md", kTop / "java-harness/README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kTop / "agent/doc")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const fs::path& page : pages) {
    for (const std::string& link : all_matches(read(page), "\\]\\(([^)#:]+)(?:#[^)]*)?\\)")) {
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << fs::relative(page, kTop) << " leads to " << link;
    }
  }
  // A first reader's page: short, and it says where the limits are.
  std::string first = read(kTop / "README.md");
  EXPECT_LE(std::count(first.begin(), first.end(), '\n'), 150);
  EXPECT_NE(first.find("agent/doc/limits.md"), std::string::npos);
}

}  // namespace
}  // namespace classaccess
