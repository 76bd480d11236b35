// The patterns of `classes=LIST` (and, as plain globs, of `threads=LIST`):
// interface.md section 1. Compiled once at start, matched by the trap handler
// when a class is seen for the first time.
//
// A glob is matched against the name as users write it: dots for slashes and
// `com.acme.Order[]` for `[Lcom/acme/Order;`. The translation is done while
// matching, character by character: a name may have 65535 bytes, which neither the
// handler's stack nor an allocation may hold.
// Context: add: start only, one thread (class_pattern_parse.cc, the only part that
// allocates). matches, glob_matches: signal handler, no allocation, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace classaccess {

struct ClassPattern {
  std::string text;                          // as the user wrote it, for the report at exit
  std::string glob;                          // normalised: dots, no '!' or '+', arrays as "int[]"; constant after add
  bool negative = false;                     // leading '!'
  bool subclasses = false;                   // trailing '+'
  bool simple_name = false;                  // no dot: matches in any package
  mutable std::atomic<uint64_t> matched{0};  // classes it matched, whether or not it decided
};

class ClassPatterns {
 public:
  static constexpr size_t kMax = 256;

  // Adds one list item. Empty string: fine; else the reason it is malformed (one
  // line, without the item itself) and nothing is added.
  std::string add(std::string_view item);

  // `name` is the VM's name of the class (com/acme/Order, [I, [[Lcom/acme/Order;),
  // supers its super classes' and interfaces' VM names, for `+`. No pattern: every
  // class matches. Only negative patterns: every class but those. Else the last
  // pattern that matches decides. A name that is no VM name is matched as written.
  bool matches(std::string_view name, const std::string_view* supers, size_t super_count) const;

  size_t count() const { return count_; }
  const ClassPattern& at(size_t i) const { return patterns_[i]; }

 private:
  ClassPattern patterns_[kMax];
  size_t count_ = 0;
};

// `*` any characters but dots, `**` any characters. Also used for thread names
// with `**` semantics for both (star_crosses_dots). No allocation, no recursion; time
// grows with the square of the text at worst.
bool glob_matches(std::string_view pattern, std::string_view text, bool star_crosses_dots);

}  // namespace classaccess
