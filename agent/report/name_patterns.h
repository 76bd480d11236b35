// The patterns of --class and --thread. They mean what they mean in `classes=` and `threads=`
// (interface.md section 1): `com.acme.Order`, `Order` in any package, `*` any characters but dots,
// `**` any, `+` with subclasses, a leading `!` takes out, the last one that matches decides.
// In thread names `*` crosses dots.
// Context: the classaccess command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace classaccess {

class NamePatterns {
 public:
  enum class Of { kClasses, kThreads };

  // Each item may be a list with commas.
  NamePatterns(Of of, const std::vector<std::string>& items);

  bool empty() const { return patterns_.empty(); }
  // As given, for messages.
  const std::string& text() const { return text_; }
  // supers: the names of the class's super classes, for `+`.
  bool matches(const std::string& name, const std::vector<std::string>& supers = {}) const;

 private:
  struct Pattern {
    std::string glob;
    bool negative = false, subclasses = false, simple_name = false;
  };
  bool matches_one(const Pattern& pattern, const std::string& name) const;

  Of of_;
  std::string text_;
  std::vector<Pattern> patterns_;
};

}  // namespace classaccess
