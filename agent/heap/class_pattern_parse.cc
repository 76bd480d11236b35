// ClassPatterns::add: start only, allocates. Kept apart from class_pattern.cc so that
// the signal-safety check can leave this one object file out.
#include "agent/heap/class_pattern.h"

namespace classaccess {
namespace {

// `[B`, `[[Lcom/acme/Order;` to `byte[]`, `com/acme/Order[][]`. False if malformed.
bool descriptor_to_name(std::string* name) {
  size_t dimensions = name->find_first_not_of('[');
  if (dimensions == std::string::npos) return false;
  std::string element = name->substr(dimensions);
  static constexpr std::string_view kPrimitives[] = {"Bbyte", "Cchar", "Ddouble", "Ffloat",
                                                     "Iint",  "Jlong", "Sshort",  "Zboolean"};
  std::string base;
  if (element.size() > 2 && element.front() == 'L' && element.back() == ';') {
    base = element.substr(1, element.size() - 2);
  } else if (element.size() == 1) {
    for (std::string_view primitive : kPrimitives) {
      if (primitive[0] == element[0]) base = primitive.substr(1);
    }
  }
  if (base.empty()) return false;
  for (size_t i = 0; i < dimensions; ++i) base += "[]";
  *name = base;
  return true;
}

// The reason `glob`, already with dots, cannot name a class.
std::string check(const std::string& glob) {
  std::string base = glob;
  while (base.size() >= 2 && base.compare(base.size() - 2, 2, "[]") == 0) base.resize(base.size() - 2);
  if (base.empty()) return "it has no class name";
  if (base.find_first_of("[]") != std::string::npos) return "brackets go in pairs at the end, as in int[]";
  if (base.find_first_of(";,\"=") != std::string::npos) return "a class name has none of ; , \" =";
  if (base.front() == ' ' || base.back() == ' ') return "it starts or ends with a blank";
  if (base.find(' ') != std::string::npos) {
    return "it has a blank: classes are separated by commas (in a name that has one, write * for it)";
  }
  for (char c : base) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return "it has a control character";
  }
  if (base.front() == '.') return "it starts with a dot";
  if (base.back() == '.') return "it ends with a dot: write PACKAGE.* for one package, PACKAGE.** for all below";
  if (base.find("..") != std::string::npos) return "it has two dots in a row";
  if (base.find("***") != std::string::npos) return "it has three stars in a row";
  return "";
}

}  // namespace

std::string ClassPatterns::add(std::string_view item) {
  std::string glob(item);
  bool negative = !glob.empty() && glob.front() == '!';
  if (negative) glob.erase(0, 1);
  bool subclasses = !glob.empty() && glob.back() == '+';
  if (subclasses) glob.pop_back();
  if (subclasses && !glob.empty() && glob.back() == '+') return "one + at its end takes the subclasses";
  if (!glob.empty() && glob.front() == '[' && !descriptor_to_name(&glob)) {
    return "it is no array descriptor such as [B or [Lcom/acme/Order;";
  }
  for (char& c : glob) {
    if (c == '/') c = '.';
  }
  std::string reason = check(glob);
  if (!reason.empty()) return reason;
  if (count_ == kMax) return "there are more than " + std::to_string(kMax) + " patterns";

  ClassPattern& pattern = patterns_[count_++];
  pattern.text = item;
  pattern.negative = negative;
  pattern.subclasses = subclasses;
  pattern.simple_name = glob.find('.') == std::string::npos;
  pattern.glob = std::move(glob);
  return "";
}

}  // namespace classaccess
