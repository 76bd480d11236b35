// The patterns of `classes=LIST` (and, as plain globs, of `threads=LIST`):
// interface.md section 1. Compiled once at start, matched by the trap handler
// when a class is seen for the first time.
// Context: parse: start only. matches: signal handler, no allocation, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace classaccess {

struct ClassPattern {
  std::string text;        // as the user wrote it, for the report at exit
  std::string glob;        // normalised: dots, no '!' or '+', arrays as "int[]"
  bool negative = false;   // leading '!'
  bool subclasses = false; // trailing '+'
  bool simple_name = false; // no dot: matches in any package
  std::atomic<uint64_t> matched{0};  // classes it matched
};

class ClassPatterns {
 public:
  static constexpr size_t kMax = 256;

  // Adds one list item. Empty string: fine; else the reason it is malformed.
  std::string add(std::string_view item);

  // `name` is the VM's name of the class (com/acme/Order, [I, [[Lcom/acme/Order;),
  // supers its super classes' and interfaces' VM names, for `+`. No pattern: every
  // class matches. Only negative patterns: every class but those. Else the last
  // pattern that matches decides.
  bool matches(std::string_view name, const std::string_view* supers, size_t super_count);

  size_t count() const { return count_; }
  const ClassPattern& at(size_t i) const { return patterns_[i]; }

 private:
  ClassPattern patterns_[kMax];
  size_t count_ = 0;
};

// `*` any characters but dots, `**` any characters. Also used for thread names
// with `**` semantics for both. No allocation, no recursion deeper than the pattern.
bool glob_matches(std::string_view pattern, std::string_view text, bool star_crosses_dots);

}  // namespace classaccess
