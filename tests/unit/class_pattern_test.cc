#include "agent/heap/class_pattern.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>

namespace classaccess {
namespace {

std::unique_ptr<ClassPatterns> compiled(std::initializer_list<const char*> items) {
  auto patterns = std::make_unique<ClassPatterns>();
  for (const char* item : items) EXPECT_EQ("", patterns->add(item)) << item;
  return patterns;
}

bool matches(std::initializer_list<const char*> items, std::string_view vm_name,
             std::initializer_list<std::string_view> supers = {}) {
  return compiled(items)->matches(vm_name, supers.begin(), supers.size());
}

TEST(ClassPattern, NoPatternMeansEveryClass) { EXPECT_TRUE(matches({}, "a/B")); }

TEST(ClassPattern, ExactBinaryName) {
  EXPECT_TRUE(matches({"com.acme.Order"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"com/acme/Order"}, "com/acme/Order"));
  EXPECT_FALSE(matches({"com.acme.Order"}, "com/acme/Orders"));
  EXPECT_FALSE(matches({"com.acme.Order"}, "com/acme/Order$Line"));
  EXPECT_FALSE(matches({"com.acme.Order"}, "org/com/acme/Order"));
  EXPECT_FALSE(matches({"com.acme.Order"}, "Order"));
  EXPECT_TRUE(matches({"com.acme.Order$Line"}, "com/acme/Order$Line"));
}

TEST(ClassPattern, SimpleNameInAnyPackage) {
  EXPECT_TRUE(matches({"Order"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"Order"}, "Order"));
  EXPECT_FALSE(matches({"Order"}, "com/acme/PreOrder"));
  EXPECT_FALSE(matches({"Order"}, "Order/Foo"));
  EXPECT_TRUE(matches({"Order*"}, "com/acme/OrderLine"));
  EXPECT_TRUE(matches({"Order*"}, "com/acme/Order"));
  EXPECT_FALSE(matches({"Order*"}, "com/acme/PreOrder"));
  EXPECT_TRUE(matches({"*Line"}, "com/acme/Order$Line"));
  EXPECT_TRUE(matches({"**"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"com**"}, "com/acme/Order")) << "** crosses dots, also in a pattern that has none";
}

TEST(ClassPattern, OnePackageOrAllBelow) {
  EXPECT_TRUE(matches({"com.acme.*"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"com.acme.*"}, "com/acme/Order$Line"));
  EXPECT_FALSE(matches({"com.acme.*"}, "com/acme/shop/Order"));
  EXPECT_FALSE(matches({"com.acme.*"}, "com/acmeOrder"));
  EXPECT_TRUE(matches({"com.acme.**"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"com.acme.**"}, "com/acme/shop/Order"));
  EXPECT_FALSE(matches({"com.acme.**"}, "com/other/Order"));
  EXPECT_TRUE(matches({"com.*.Order"}, "com/acme/Order"));
  EXPECT_FALSE(matches({"com.*.Order"}, "com/acme/shop/Order"));
  EXPECT_TRUE(matches({"com.**.Order"}, "com/acme/shop/Order"));
}

TEST(ClassPattern, Arrays) {
  EXPECT_TRUE(matches({"int[]"}, "[I"));
  EXPECT_FALSE(matches({"int[]"}, "[[I"));
  EXPECT_FALSE(matches({"int[]"}, "[J"));
  EXPECT_TRUE(matches({"byte[][]"}, "[[B"));
  EXPECT_TRUE(matches({"[B"}, "[B"));
  EXPECT_TRUE(matches({"com.acme.Order[]"}, "[Lcom/acme/Order;"));
  EXPECT_TRUE(matches({"[Lcom/acme/Order;"}, "[Lcom/acme/Order;"));
  EXPECT_TRUE(matches({"[Lcom.acme.Order;"}, "[Lcom/acme/Order;"));
  EXPECT_TRUE(matches({"Order[]"}, "[Lcom/acme/Order;"));
  EXPECT_FALSE(matches({"com.acme.Order[]"}, "com/acme/Order"));
  EXPECT_FALSE(matches({"com.acme.Order"}, "[Lcom/acme/Order;"));
  EXPECT_TRUE(matches({"com.acme.*"}, "[Lcom/acme/Order;")) << "a star stands for brackets too";
  EXPECT_TRUE(matches({"*[]"}, "[Z"));
  const char* const kPrimitives[][2] = {{"byte[]", "[B"}, {"char[]", "[C"}, {"double[]", "[D"}, {"float[]", "[F"},
                                        {"int[]", "[I"},  {"long[]", "[J"}, {"short[]", "[S"},  {"boolean[]", "[Z"}};
  for (auto& [name, descriptor] : kPrimitives) {
    EXPECT_TRUE(matches({name}, descriptor)) << name;
    EXPECT_TRUE(matches({descriptor}, descriptor)) << descriptor;
    EXPECT_EQ(name, compiled({descriptor})->at(0).glob);
  }
}

TEST(ClassPattern, SubclassesOnlyWithPlus) {
  EXPECT_FALSE(matches({"com.acme.Order"}, "com/acme/Rush", {"com/acme/Order", "java/lang/Object"}));
  EXPECT_TRUE(matches({"com.acme.Order+"}, "com/acme/Rush", {"com/acme/Order", "java/lang/Object"}));
  EXPECT_TRUE(matches({"com.acme.Order+"}, "com/acme/Order", {"java/lang/Object"}));
  EXPECT_TRUE(matches({"Order+"}, "com/acme/Rush", {"java/lang/Object", "org/Order"}));
  EXPECT_FALSE(matches({"com.acme.Order+"}, "com/acme/Item", {"java/lang/Object"}));
}

TEST(ClassPattern, TheLastPatternThatMatchesDecides) {
  EXPECT_FALSE(matches({"com.acme.**", "!com.acme.Order"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"com.acme.**", "!com.acme.Order"}, "com/acme/Item"));
  EXPECT_TRUE(matches({"!com.acme.Order", "com.acme.**"}, "com/acme/Order"));
  EXPECT_TRUE(matches({"!com.acme.Order"}, "com/acme/Item")) << "only negative ones: all but those";
  EXPECT_FALSE(matches({"!com.acme.Order"}, "com/acme/Order"));
  EXPECT_FALSE(matches({"!com.acme.Order", "com.acme.Item"}, "com/acme/Third"));
  EXPECT_FALSE(matches({"**", "!com.acme.Order+"}, "com/acme/Rush", {"com/acme/Order"}));
}

TEST(ClassPattern, CountsEveryPatternThatMatched) {
  auto patterns = compiled({"com.acme.**", "!com.acme.Order", "org.none.*"});
  patterns->matches("com/acme/Order", nullptr, 0);
  patterns->matches("com/acme/Item", nullptr, 0);
  EXPECT_EQ(2u, patterns->at(0).matched);
  EXPECT_EQ(1u, patterns->at(1).matched);
  EXPECT_EQ(0u, patterns->at(2).matched);
  EXPECT_EQ("!com.acme.Order", patterns->at(1).text);
}

TEST(ClassPattern, MalformedItemsAreRefusedAndNotAdded) {
  ClassPatterns patterns;
  for (const char* bad :
       {"",     "!",    "+",      "!+",      "[",        "[X",   "[L;",       "[Lcom/acme/Order", "[]",
        "Foo[", "Foo]", "Foo[1]", "F[]oo",   "com..Foo", ".Foo", "com.acme.", "com/acme/",        "a***",
        "Foo;", "a,b",  "a=b",    "\"Foo\"", " Foo",     "Foo ", "a\tb"}) {
    EXPECT_NE("", patterns.add(bad)) << bad;
  }
  EXPECT_EQ(0u, patterns.count());
}

TEST(ClassPattern, RefusesMoreThanItHolds) {
  ClassPatterns patterns;
  for (size_t i = 0; i < ClassPatterns::kMax; ++i) EXPECT_EQ("", patterns.add("A" + std::to_string(i)));
  EXPECT_NE("", patterns.add("OneMore"));
  EXPECT_EQ(ClassPatterns::kMax, patterns.count());
}

TEST(ClassPattern, OddVmNamesAreMatchedAsWritten) {
  EXPECT_FALSE(matches({"Order"}, ""));
  EXPECT_FALSE(matches({"Order"}, "["));
  EXPECT_FALSE(matches({"Order"}, "[["));
  EXPECT_FALSE(matches({"Order"}, "[L;"));
  EXPECT_TRUE(matches({"*"}, "["));
  EXPECT_TRUE(matches({"com.acme.*"}, "com/acme/Order$$Lambda+0x00007f12"));
}

TEST(Glob, ThreadNamesLetOneStarCrossDots) {
  EXPECT_TRUE(glob_matches("worker-*", "worker-1.2", true));
  EXPECT_FALSE(glob_matches("worker-*", "worker-1.2", false));
  EXPECT_TRUE(glob_matches("*", "", true));
  EXPECT_TRUE(glob_matches("", "", true));
  EXPECT_FALSE(glob_matches("", "a", true));
  EXPECT_FALSE(glob_matches("a", "", true));
}

// The plain definition, exponential.
bool reference(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') {
    return !text.empty() && pattern[0] == text[0] && reference(pattern.substr(1), text.substr(1));
  }
  bool crosses = pattern.size() > 1 && pattern[1] == '*';
  std::string_view rest = pattern.substr(crosses ? 2 : 1);
  for (size_t i = 0;; ++i) {
    if (reference(rest, text.substr(i))) return true;
    if (i == text.size() || (text[i] == '.' && !crosses)) return false;
  }
}

// Every pattern up to six and every text up to five characters of {a, ., *}.
TEST(Glob, AgreesWithThePlainDefinition) {
  auto words = [](const std::string& letters, size_t longest) {
    std::vector<std::string> all{""};
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() == longest) continue;
      for (char c : letters) all.push_back(all[i] + c);
    }
    return all;
  };
  std::vector<std::string> texts = words("ab.", 5);
  size_t hits = 0;
  for (const std::string& pattern : words("a.*", 6)) {
    if (pattern.find("***") != std::string::npos) continue;
    for (const std::string& text : texts) {
      bool expected = reference(pattern, text);
      hits += expected;
      ASSERT_EQ(expected, glob_matches(pattern, text, false)) << pattern << " on " << text;
    }
  }
  EXPECT_GT(hits, 1000u);
}

}  // namespace
}  // namespace classaccess
