#include "agent/calls/java/call_patterns.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

TEST(CallPatterns, ClassAndMethod) {
  CallPatterns patterns;
  for (const char* item : {"com.acme.Order.total", "Invoice.*", "com.acme.web.*.handle", "org.**.do*", "a.B.<init>",
                           "!org.h2.Secret.*", "com/acme/Slash.m"}) {
    EXPECT_EQ(patterns.add(item), "") << item;
  }
  EXPECT_TRUE(patterns.matches("com/acme/Order", "total"));
  EXPECT_FALSE(patterns.matches("com/acme/Order", "totals"));
  EXPECT_FALSE(patterns.matches("com/acme/Order$Line", "total"));
  EXPECT_TRUE(patterns.matches("any/where/Invoice", "<init>"));
  EXPECT_TRUE(patterns.matches("com/acme/web/Shop", "handle"));
  EXPECT_FALSE(patterns.matches("com/acme/web/in/Shop", "handle"));
  EXPECT_TRUE(patterns.matches("org/h2/Command", "doIt"));
  EXPECT_TRUE(patterns.matches_class("org/h2/Secret"));
  EXPECT_FALSE(patterns.matches("org/h2/Secret", "doIt"));
  EXPECT_TRUE(patterns.matches("a/B", "<init>"));
  EXPECT_TRUE(patterns.matches("com/acme/Slash", "m"));
  EXPECT_FALSE(patterns.matches_class("com/acme/Other"));
  EXPECT_EQ(patterns.unmatched(), (std::vector<std::string>{}));
}

TEST(CallPatterns, WhatNeverMatchedIsKnown) {
  CallPatterns patterns;
  EXPECT_EQ(patterns.add("a.B.c"), "");
  EXPECT_EQ(patterns.add("a.B.d"), "");
  EXPECT_EQ(patterns.add("!a.B.e"), "");
  EXPECT_TRUE(patterns.matches("a/B", "c"));
  EXPECT_EQ(patterns.unmatched(), (std::vector<std::string>{"a.B.d"}));
}

TEST(CallPatterns, NativeItems) {
  EXPECT_TRUE(is_native_call_item("libz.so!inflate"));
  EXPECT_TRUE(is_native_call_item("!libz.so!inflate"));
  EXPECT_FALSE(is_native_call_item("!a.B.c"));
  EXPECT_FALSE(is_native_call_item(""));
}

}  // namespace
}  // namespace classaccess
