#include "agent/heap/class_pattern.h"

namespace classaccess {
namespace {

constexpr size_t kNone = ~static_cast<size_t>(0);

struct PlainText {
  std::string_view text;
  size_t size() const { return text.size(); }
  char operator[](size_t i) const { return text[i]; }
};

std::string_view primitive_name(char descriptor) {
  switch (descriptor) {
    case 'B': return "byte";
    case 'C': return "char";
    case 'D': return "double";
    case 'F': return "float";
    case 'I': return "int";
    case 'J': return "long";
    case 'S': return "short";
    case 'Z': return "boolean";
    default: return {};
  }
}

// A VM class name read as users write it, from `first` on.
struct UserName {
  std::string_view base;  // element type or class, still with slashes
  size_t dimensions = 0;
  size_t first = 0;

  explicit UserName(std::string_view vm_name) : base(vm_name) {
    size_t brackets = 0;
    while (brackets < vm_name.size() && vm_name[brackets] == '[') ++brackets;
    if (brackets == 0) return;
    std::string_view element = vm_name;
    element.remove_prefix(brackets);
    if (element.size() == 1) {
      std::string_view primitive = primitive_name(element[0]);
      if (primitive.empty()) return;
      base = primitive;
    } else if (element.size() > 2 && element.front() == 'L' && element.back() == ';') {
      element.remove_prefix(1);
      element.remove_suffix(1);
      base = element;
    } else {
      return;
    }
    dimensions = brackets;
  }

  void skip_package() {
    for (size_t i = base.size(); i > 0; --i) {
      if (base[i - 1] == '/' || base[i - 1] == '.') {
        first = i;
        return;
      }
    }
  }

  size_t size() const { return base.size() + 2 * dimensions - first; }
  char operator[](size_t i) const {
    i += first;
    if (i >= base.size()) return (i - base.size()) % 2 == 0 ? '[' : ']';
    return base[i] == '/' ? '.' : base[i];
  }
};

// Two places to go back to suffice, the newest star of each kind. A newer `**` makes
// every older star pointless, since it can take what they would. A newer `*` makes an
// older `*` pointless: what stands between them either has no dot, and then the newer
// star reaches as far as the older, or has one, and then it can stand in one place only.
template <typename Text>
bool glob_matches_text(std::string_view pattern, const Text& text, bool star_crosses_dots) {
  size_t p = 0, t = 0;
  size_t star_p = kNone, star_t = 0;    // behind the newest `*`; where what follows it was tried
  size_t cross_p = kNone, cross_t = 0;  // the same for `**`
  for (;;) {
    if (p < pattern.size() && pattern[p] == '*') {
      bool crosses = star_crosses_dots;
      for (++p; p < pattern.size() && pattern[p] == '*'; ++p) crosses = true;
      star_p = kNone;
      if (crosses) {
        cross_p = p;
        cross_t = t;
      } else {
        star_p = p;
        star_t = t;
      }
      continue;
    }
    if (p == pattern.size() && t == text.size()) return true;
    if (p < pattern.size() && t < text.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star_p != kNone && star_t < text.size() && text[star_t] != '.') {
      p = star_p;
      t = ++star_t;
    } else if (cross_p != kNone && cross_t < text.size()) {
      star_p = kNone;
      p = cross_p;
      t = ++cross_t;
    } else {
      return false;
    }
  }
}

bool pattern_matches(const ClassPattern& pattern, std::string_view vm_name) {
  UserName name(vm_name);
  if (glob_matches_text(pattern.glob, name, false)) return true;
  if (!pattern.simple_name) return false;
  name.skip_package();
  return glob_matches_text(pattern.glob, name, false);
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text, bool star_crosses_dots) {
  return glob_matches_text(pattern, PlainText{text}, star_crosses_dots);
}

bool ClassPatterns::matches(std::string_view name, const std::string_view* supers, size_t super_count) const {
  bool any_positive = false;
  bool decided = false, selected = false;
  for (size_t i = 0; i < count_; ++i) {
    const ClassPattern& pattern = patterns_[i];
    any_positive |= !pattern.negative;
    bool hit = pattern_matches(pattern, name);
    for (size_t s = 0; pattern.subclasses && !hit && s < super_count; ++s) hit = pattern_matches(pattern, supers[s]);
    if (!hit) continue;
    pattern.matched.fetch_add(1, std::memory_order_relaxed);
    decided = true;
    selected = !pattern.negative;
  }
  return decided ? selected : !any_positive;
}

}  // namespace classaccess
