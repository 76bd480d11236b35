// Option strings, option files and class patterns never crash, hang or break the promises of their headers.
//   options_fuzz -max_total_time=60 tests/fuzz/options_corpus
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "agent/heap/class_pattern.h"
#include "agent/jvmti/options.h"

using namespace classaccess;

namespace {

void require(bool condition) {
  if (!condition) abort();
}

void check(const std::string& text) {
  Options options;
  std::string message = parse_options(text.c_str(), &options);
  if (!message.empty()) {
    require(message.find('\n') == std::string::npos);
    require(message.find("; valid options: ") != std::string::npos);
    return;
  }
  require(options.text == text.c_str());
  require(options.heap != HeapScope::kRange || options.heap_low < options.heap_high);
  expand_path(options.out, 1, 2);
  auto patterns = std::make_unique<ClassPatterns>();
  for (const std::string& item : options.classes) require(patterns->add(item).empty());
  for (const std::string& item : options.classes) patterns->matches(item, nullptr, 0);
  for (const std::string& item : options.threads) glob_matches(item, text.substr(0, 64), true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0 || size > 4096) return 0;
  std::string text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  if (bytes[0] % 2 == 0) {
    // No files of the machine it runs on.
    if (text.find('@') == std::string::npos) check(text);
    return 0;
  }
  static int fd = memfd_create("options", 0);
  require(ftruncate(fd, 0) == 0 && pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  check("@/proc/self/fd/" + std::to_string(fd));
  return 0;
}
