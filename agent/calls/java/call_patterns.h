// The Java items of `calls=LIST`: which methods are timed.
//
// CLASS.METHOD: the class as in `classes=` (exact, simple name, package globs), the method's name, all its overloads;
// `*` stands for any characters in both, `<init>` for constructors. A leading `!` takes out. The last item that
// matches decides. An item with a `!` further on names native functions (calls/native_calls.h).
// Context: add: start only. matches: class-load hook, any Java thread.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace classaccess {

// Of the items of calls=: LIBRARY!SYMBOL, with or without a leading `!`.
bool is_native_call_item(std::string_view item);

class CallPatterns {
 public:
  // Empty string, or why the item is malformed (one line, without the item); then nothing is added.
  std::string add(std::string_view item);
  bool empty() const { return patterns_.empty(); }

  // `class_name` with slashes or dots. Whether a method of it may be timed.
  bool matches_class(std::string_view class_name) const;
  bool matches(std::string_view class_name, std::string_view method) const;

  // As written; those that no method of a loaded class matched.
  std::vector<std::string> unmatched() const;

 private:
  struct Pattern {
    std::string text, class_glob, method_glob;
    bool negative = false;
    bool simple_name = false;  // no dot: in any package
    mutable std::atomic<bool> matched{false};
  };
  static bool class_fits(const Pattern& pattern, std::string_view dotted);

  std::deque<Pattern> patterns_;
};

}  // namespace classaccess
