#include "agent/store/java_names.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

TEST(JavaNames, Classes) {
  EXPECT_EQ(dotted_class_name("com/acme/Order"), "com.acme.Order");
  EXPECT_EQ(dotted_class_name("com/acme/Order$Line"), "com.acme.Order$Line");
  EXPECT_EQ(dotted_class_name("Order"), "Order");
  EXPECT_EQ(dotted_class_name("[I"), "int[]");
  EXPECT_EQ(dotted_class_name("[[B"), "byte[][]");
  EXPECT_EQ(dotted_class_name("[Lcom/acme/Order;"), "com.acme.Order[]");
  EXPECT_EQ(dotted_class_name("[[Lcom/acme/Order;"), "com.acme.Order[][]");
  EXPECT_EQ(dotted_class_name("[Z"), "boolean[]");
}

TEST(JavaNames, HiddenClassesKeepTheirSuffix) {
  EXPECT_EQ(dotted_class_name("com/acme/Main$$Lambda$14/0x0000000800c03000"),
            "com.acme.Main$$Lambda$14/0x0000000800c03000");
  EXPECT_EQ(dotted_class_name("com/acme/Main$$Lambda+0x00007f8a1c000400"), "com.acme.Main$$Lambda/0x00007f8a1c000400");
  EXPECT_EQ(dotted_class_name("com/acme/A+0xG"), "com.acme.A+0xG") << "no hidden class";
}

TEST(JavaNames, Descriptors) {
  EXPECT_EQ(type_of_descriptor("I"), "int");
  EXPECT_EQ(type_of_descriptor("Ljava/lang/String;"), "java.lang.String");
  EXPECT_EQ(type_of_descriptor("[J"), "long[]");
  EXPECT_EQ(type_of_descriptor("[[Ljava/lang/Object;"), "java.lang.Object[][]");
}

TEST(JavaNames, ModifiedUtf8) {
  EXPECT_EQ(utf8_from_modified("plain"), "plain");
  EXPECT_EQ(utf8_from_modified("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(utf8_from_modified("\xE2\x82\xAC"), "\xE2\x82\xAC");
  EXPECT_EQ(utf8_from_modified("\xED\xA0\xBD\xED\xB8\x80"), "\xF0\x9F\x98\x80");  // U+1F600
  EXPECT_EQ(utf8_from_modified("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");          // standard form
  EXPECT_EQ(utf8_from_modified(std::string_view("a\xC0\x80"
                                                "b",
                                                4)),
            "a\\0b");
  EXPECT_EQ(utf8_from_modified(std::string_view("a\0b", 3)), "a\\0b");
}

TEST(JavaNames, MalformedBytesBecomeReplacementCharacters) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(utf8_from_modified("\xED\xA0\xBD"), bad);         // lone high
  EXPECT_EQ(utf8_from_modified("\xED\xB8\x80x"), bad + "x");  // lone low
  EXPECT_EQ(utf8_from_modified("\xED\xA0\xBD\xED\xA0\xBD\xED\xB8\x80"), bad + "\xF0\x9F\x98\x80");
  EXPECT_EQ(utf8_from_modified("\xED\xA0\xBDq"), bad + "q");
  EXPECT_EQ(utf8_from_modified("a\xFF"), "a" + bad);
  EXPECT_EQ(utf8_from_modified("a\xE2\x82"), "a" + bad + bad);  // cut short
  EXPECT_EQ(utf8_from_modified("\xC1\x81"), bad);               // overlong
  EXPECT_EQ(utf8_from_modified("\x80"), bad);
}

}  // namespace
}  // namespace classaccess
