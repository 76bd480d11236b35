// Text, tables and patterns of the report, without a database.
#include <gtest/gtest.h>

#include "agent/report/name_patterns.h"
#include "agent/report/table.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

TEST(ReportText, Numbers) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(INT64_MIN), "-9,223,372,036,854,775,808");
  EXPECT_EQ(duration(0), "0 ns");
  EXPECT_EQ(duration(999), "999 ns");
  EXPECT_EQ(duration(1500), "1.50 us");
  EXPECT_EQ(duration(2000000), "2.00 ms");
  EXPECT_EQ(duration(61234000000), "61.23 s");
}

TEST(ReportText, NamesCannotReachTheTerminal) {
  EXPECT_EQ(printable("plain name"), "plain name");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(printable(std::string("\xc2\x9b") + "1m"), "\\x9b1m");        // a C1 control in UTF-8
  EXPECT_EQ(printable(std::string("a\xe2\x80\xae") + "b"), "a\\u202eb");  // turns the direction
  EXPECT_EQ(printable("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd");           // no UTF-8
  EXPECT_EQ(printable("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");           // too long a form
  EXPECT_EQ(printable("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(printable("K\xc3\xa4se\xf0\x9f\x98\x80"), "K\xc3\xa4se\xf0\x9f\x98\x80");
}

TEST(ReportText, WidthsAreThoseOfATerminal) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("K\xc3\xa4se"), 4u);
  EXPECT_EQ(display_width("\xe6\xb3\xa8\xe6\x96\x87"), 4u);  // two wide characters
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);                 // a combining accent
  EXPECT_EQ(pad_left("\xe6\xb3\xa8", 4), "  \xe6\xb3\xa8");
  EXPECT_EQ(cut_front("com.acme.Order", 10), "..me.Order");
  EXPECT_EQ(cut_back("com.acme.Order", 10), "com.acme..");
  EXPECT_EQ(cut_front("short", 5), "short");
  EXPECT_EQ(cut_back("\xe6\xb3\xa8\xe6\x96\x87\xe6\xb3\xa8", 5), "\xe6\xb3\xa8..");
  EXPECT_EQ(cut_front("\xe6\xb3\xa8\xe6\x96\x87\xe6\xb3\xa8", 5), "..\xe6\xb3\xa8");
  EXPECT_EQ(cut_back("abc", 2), "..");
  EXPECT_EQ(cut_front("abc", 0), "");
}

TEST(ReportText, WrapBreaksAtBlanksAndCommas) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("", 10), Lines{""});
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("classes=A,out=x", 12), (Lines{"classes=A,", "out=x"}));
  EXPECT_EQ(wrap("abcdefghij", 4), (Lines{"abcd", "efgh", "ij"}));
}

TEST(ReportText, CsvAndJson) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
  EXPECT_EQ(csv_field(" x"), "\" x\"");
  EXPECT_EQ(json_string("a\"b\\c\n\x01\xff"), "\"a\\\"b\\\\c\\u000a\\u0001\xef\xbf\xbd\"");
}

Table two_rows() {
  Table table;
  table.name = "demo";
  table.title = "Demo";
  table.columns = {{"class", Kind::kText, 0, 10},
                   {"accesses", Kind::kCount},
                   {"share", Kind::kShare},
                   {"loads", Kind::kCount, 1},
                   {"first_touch", Kind::kDuration, 2}};
  table.rows = {{std::string("com.acme.shop.Order"), int64_t{1234567}, 99.5, int64_t{12}, int64_t{1500}},
                {std::string("x"), int64_t{1}, 0.5, Cell(), Cell()}};
  table.if_empty = "nothing";
  return table;
}

TEST(ReportTable, NumbersAreRightAligned) {
  EXPECT_EQ(table_as_text(two_rows(), 80),
            "== Demo\n"
            "class                 accesses  share %  loads  first touch\n"
            "com.acme.shop.Order  1,234,567    99.50     12      1.50 us\n"
            "x                            1     0.50      -            -\n");
}

TEST(ReportTable, TextIsCutThenColumnsAreLeftOutByRank) {
  EXPECT_EQ(table_as_text(two_rows(), 50),
            "== Demo\n"
            "class        accesses  share %  loads  first touch\n"
            "..op.Order  1,234,567    99.50     12      1.50 us\n"
            "x                   1     0.50      -            -\n");
  EXPECT_EQ(table_as_text(two_rows(), 40),
            "== Demo\n"
            "class           accesses  share %  loads\n"
            "..shop.Order   1,234,567    99.50     12\n"
            "x                      1     0.50      -\n"
            "  left out, no room: first touch\n");
}

TEST(ReportTable, GroupsAndGapsAndWrappedText) {
  Table table;
  table.title = "Layout";
  table.grouped = true;
  table.columns = {{"class"}, {"field", Kind::kTail}, {"meaning", Kind::kWrapped, 0, 8}};
  table.rows = {{std::string("A"), std::string("x"), std::string("one two three")},
                {std::string("A"), std::string("y"), Cell()},
                {std::string("B"), std::string("z"), std::string("four")}};
  table.group_notes = {"16 bytes", "24 bytes"};
  EXPECT_EQ(table_as_text(table, 16),
            "== Layout\n"
            "A  16 bytes\n"
            "field  meaning\n"
            "x      one two\n"
            "       three\n"
            "y\n"
            "\n"
            "B  24 bytes\n"
            "field  meaning\n"
            "z      four\n");
}

TEST(ReportTable, EmptySaysSo) {
  Table table = two_rows();
  table.rows.clear();
  EXPECT_EQ(table_as_text(table, 80), "== Demo\n  nothing\n");
  EXPECT_EQ(table_as_csv(table), "class,accesses,share,loads,first_touch\n");
  EXPECT_EQ(table_as_json(table, ""), "{\n  \"title\": \"Demo\",\n  \"notes\": [],\n  \"rows\": []\n}");
}

TEST(ReportTable, DataIsNotFormatted) {
  EXPECT_EQ(table_as_csv(two_rows()),
            "class,accesses,share,loads,first_touch\n"
            "com.acme.shop.Order,1234567,99.5,12,1500\n"
            "x,1,0.5,,\n");
  EXPECT_EQ(table_as_json(two_rows(), ""),
            "{\n  \"title\": \"Demo\",\n  \"notes\": [],\n  \"rows\": [\n"
            "    {\"class\": \"com.acme.shop.Order\", \"accesses\": 1234567, \"share\": 99.5, \"loads\": 12, "
            "\"first_touch\": 1500},\n"
            "    {\"class\": \"x\", \"accesses\": 1, \"share\": 0.5, \"loads\": null, \"first_touch\": null}\n  ]\n}");
}

bool fits(const char* pattern, const char* name, const std::vector<std::string>& supers = {}) {
  return NamePatterns(NamePatterns::Of::kClasses, {pattern}).matches(name, supers);
}

TEST(ReportPatterns, MeanWhatTheyMeanToTheAgent) {
  EXPECT_TRUE(fits("com.acme.Order", "com.acme.Order"));
  EXPECT_FALSE(fits("com.acme.Order", "com.acme.Orders"));
  EXPECT_TRUE(fits("Order", "com.acme.Order"));
  EXPECT_TRUE(fits("Order", "Order"));
  EXPECT_FALSE(fits("Order", "com.acme.Order$Line"));
  EXPECT_TRUE(fits("Order$*", "com.acme.Order$Line"));
  EXPECT_TRUE(fits("com.acme.*", "com.acme.Order"));
  EXPECT_FALSE(fits("com.acme.*", "com.acme.shop.Order"));
  EXPECT_TRUE(fits("com.acme.**", "com.acme.shop.Order"));
  EXPECT_TRUE(fits("com/acme/Order", "com.acme.Order"));
  EXPECT_TRUE(fits("int[]", "int[]"));
  EXPECT_FALSE(fits("int[]", "int[][]"));
  EXPECT_TRUE(fits("*[]", "com.acme.Order[]"));
  EXPECT_FALSE(fits("Base", "com.acme.Order", {"com.acme.Base"}));
  EXPECT_TRUE(fits("Base+", "com.acme.Order", {"com.acme.Base"}));
  EXPECT_FALSE(fits("com.acme.*,!Order", "com.acme.Order"));
  EXPECT_TRUE(fits("com.acme.*,!Order", "com.acme.Base"));
  EXPECT_TRUE(fits("!Order", "com.acme.Base"));
  EXPECT_TRUE(fits("!com.acme.*, Order", "com.acme.Order"));
  EXPECT_TRUE(fits("*a*a*a*b", "aaaaaaaaaaaaaaaaaaab"));
}

TEST(ReportPatterns, OfThreadsCrossDots) {
  NamePatterns patterns(NamePatterns::Of::kThreads, {"worker-*", "pool.1*"});
  EXPECT_TRUE(patterns.matches("worker-1.a"));
  EXPECT_TRUE(patterns.matches("pool.1.thread"));
  EXPECT_FALSE(patterns.matches("main"));
  EXPECT_TRUE(NamePatterns(NamePatterns::Of::kThreads, {}).empty());
}

}  // namespace
}  // namespace classaccess
