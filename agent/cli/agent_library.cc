#include "agent/cli/agent_library.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace classaccess {

std::string find_agent_library(const std::string& given, std::string* problem) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const char* environment = std::getenv("CLASSACCESS_AGENT");
  std::vector<fs::path> places;
  if (!given.empty()) {
    places.push_back(given);
  } else if (environment != nullptr && environment[0] != '\0') {
    places.push_back(environment);
  } else {
    fs::path folder = fs::read_symlink("/proc/self/exe", ec).parent_path();
    for (const char* place : {"../lib", "../lib/classaccess", "../lib/x86_64-linux-gnu", "../lib64", "../jvmti", "."}) {
      places.push_back(folder / place / "libclassaccess.so");
    }
  }
  for (const fs::path& place : places) {
    fs::path whole = fs::canonical(place, ec);
    if (!ec && access(whole.c_str(), R_OK) == 0) return whole.string();
  }
  *problem = "libclassaccess.so was not found: " +
             (places.size() == 1 ? "'" + places[0].string() + "' cannot be read" : std::string("give --agent FILE"));
  return "";
}

}  // namespace classaccess
