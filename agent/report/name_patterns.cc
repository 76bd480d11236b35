#include "agent/report/name_patterns.h"

#include <algorithm>

#include "agent/heap/class_pattern.h"

namespace classaccess {
namespace {

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

NamePatterns::NamePatterns(Of of, const std::vector<std::string>& items) : of_(of) {
  for (const std::string& item : items) {
    text_ += (text_.empty() ? "" : ",") + item;
    for (size_t at = 0; at <= item.size();) {
      size_t end = std::min(item.find(',', at), item.size());
      Pattern pattern;
      pattern.glob = trimmed(item.substr(at, end - at));
      at = end + 1;
      if (!pattern.glob.empty() && pattern.glob[0] == '!') {
        pattern.negative = true;
        pattern.glob.erase(0, 1);
      }
      if (of == Of::kClasses) {
        if (!pattern.glob.empty() && pattern.glob.back() == '+') {
          pattern.subclasses = true;
          pattern.glob.pop_back();
        }
        std::replace(pattern.glob.begin(), pattern.glob.end(), '/', '.');
        pattern.simple_name = pattern.glob.find('.') == std::string::npos;
      }
      if (!pattern.glob.empty()) patterns_.push_back(pattern);
    }
  }
}

bool NamePatterns::matches_one(const Pattern& pattern, const std::string& name) const {
  if (of_ == Of::kThreads) return glob_matches(pattern.glob, name, true);
  if (!pattern.simple_name) return glob_matches(pattern.glob, name, false);
  return glob_matches(pattern.glob, std::string_view(name).substr(name.rfind('.') + 1), false);
}

bool NamePatterns::matches(const std::string& name, const std::vector<std::string>& supers) const {
  bool all_negative = std::all_of(patterns_.begin(), patterns_.end(), [](const Pattern& p) { return p.negative; });
  bool selected = all_negative;
  for (const Pattern& pattern : patterns_) {
    bool hit = matches_one(pattern, name);
    for (const std::string& super : supers) hit |= pattern.subclasses && matches_one(pattern, super);
    if (hit) selected = !pattern.negative;
  }
  return selected;
}

}  // namespace classaccess
