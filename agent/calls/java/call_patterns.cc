#include "agent/calls/java/call_patterns.h"

#include <memory>

#include "agent/heap/class_pattern.h"

namespace classaccess {
namespace {

std::string with_dots(std::string_view name) {
  std::string dotted(name);
  for (char& c : dotted) c = c == '/' ? '.' : c;
  return dotted;
}

std::string_view simple(std::string_view dotted) {
  size_t dot = dotted.rfind('.');
  return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

}  // namespace

bool is_native_call_item(std::string_view item) { return item.find('!', 1) != std::string_view::npos; }

std::string CallPatterns::add(std::string_view item) {
  std::string_view rest = item;
  const bool negative = rest.starts_with('!');
  if (negative) rest.remove_prefix(1);
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return "it is no CLASS.METHOD (native functions: LIBRARY!SYMBOL)";
  const std::string_view owner = rest.substr(0, dot), method = rest.substr(dot + 1);
  if (method.empty()) return "it ends with a dot: write CLASS.* for all methods";
  if (method.find_first_of("()") != std::string_view::npos) return "name the method alone: all its overloads are timed";
  if (method.find_first_of("[];/ ") != std::string_view::npos) return "a method's name has none of [ ] ; / or blanks";
  if (method.find("<") != std::string_view::npos && method != "<init>" && method != "<clinit>") {
    return "a method's name has no < but <init> and <clinit>";
  }
  if (owner.find_first_of("[]") != std::string_view::npos) return "an array has no methods";
  if (owner.ends_with('+')) return "subclasses (+) are not known to calls=: name them, or their package";
  auto check = std::make_unique<ClassPatterns>();
  std::string problem = check->add(owner);
  if (!problem.empty()) return problem;
  if (owner.starts_with('!')) return "it has two exclamation marks";
  Pattern& pattern = patterns_.emplace_back();
  pattern.text = item;
  pattern.negative = negative;
  pattern.class_glob = check->at(0).glob;
  pattern.simple_name = check->at(0).simple_name;
  pattern.method_glob = method;
  return "";
}

bool CallPatterns::class_fits(const Pattern& pattern, std::string_view dotted) {
  return glob_matches(pattern.class_glob, dotted, false) ||
         (pattern.simple_name && glob_matches(pattern.class_glob, simple(dotted), false));
}

bool CallPatterns::matches_class(std::string_view class_name) const {
  const std::string dotted = with_dots(class_name);
  for (const Pattern& pattern : patterns_) {
    if (!pattern.negative && class_fits(pattern, dotted)) return true;
  }
  return false;
}

bool CallPatterns::matches(std::string_view class_name, std::string_view method) const {
  const std::string dotted = with_dots(class_name);
  bool chosen = false;
  for (const Pattern& pattern : patterns_) {
    if (!class_fits(pattern, dotted) || !glob_matches(pattern.method_glob, method, true)) continue;
    pattern.matched.store(true, std::memory_order_relaxed);
    chosen = !pattern.negative;
  }
  return chosen;
}

std::vector<std::string> CallPatterns::unmatched() const {
  std::vector<std::string> texts;
  for (const Pattern& pattern : patterns_) {
    if (!pattern.negative && !pattern.matched.load(std::memory_order_relaxed)) texts.push_back(pattern.text);
  }
  return texts;
}

}  // namespace classaccess
