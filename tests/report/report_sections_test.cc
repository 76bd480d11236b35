// Each table of the report on a known recording: exact text, and the same numbers as SQL gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/base/counters.h"
#include "agent/report/sections.h"
#include "tests/report/recorded_shop.h"

namespace classaccess {
namespace {

class Report : public ::testing::Test {
 protected:
  Report() {
    shop.record();
    shop.finish();
  }
  std::string report(const std::vector<std::string>& sections, ReportOptions options = {}) {
    return report_of(shop.path, sections, options);
  }
  std::string csv(const std::string& section, ReportOptions options = {}) {
    options.format = "csv";
    return report({section}, options);
  }
  // The rows of SQL as CSV without its header; no value here needs quotes.
  std::string sql(const std::string& text) {
    std::string all;
    for (std::string row : query(shop.path, text)) {
      for (char& c : row) c = c == '|' ? ',' : c;
      all += row + "\n";
    }
    return all;
  }
  static ReportOptions selecting(const std::vector<std::string>& classes,
                                 const std::vector<std::string>& threads = {}) {
    ReportOptions options;
    options.selection.classes = classes;
    options.selection.threads = threads;
    return options;
  }
  static std::string without_header(const std::string& csv) { return csv.substr(csv.find('\n') + 1); }

  RecordedShop shop;
};

TEST_F(Report, Run) {
  shop.change(
      "UPDATE run SET pid = 4711, started_at = '2026-01-02T03:04:05.678901Z', ended_at = "
      "'2026-01-02T03:04:07.178901Z', jvm_vendor = 'Debian', gc = 'G1', protection = 'pkey', "
      "options = 'classes=com.acme.**,out=/var/tmp/recordings/of/this/week/shop.db,overwrite=on'");
  EXPECT_EQ(report({"run"}),
            "== Run\n"
            "what         value\n"
            "command      java -jar app.jar\n"
            "pid          4711\n"
            "jvm          Debian 17.0.15\n"
            "collector    G1\n"
            "heap_start   0x700000000\n"
            "heap_bytes   1,073,741,824\n"
            "protection   pkey\n"
            "options      classes=com.acme.**,out=/var/tmp/recordings/of/this/week/shop.db,\n"
            "             overwrite=on\n"
            "started      2026-01-02T03:04:05.678901Z\n"
            "lasted       1.500 s\n"
            "status       complete\n"
            "accesses     45\n"
            "single_rows  45\n"
            "classes      2\n"
            "threads      3\n"
            "collections  0\n");
}

TEST_F(Report, Classes) {
  EXPECT_EQ(report({"classes"}),
            "== Classes by accesses\n"
            "class           accesses  share %  loads  stores  rmws  bytes  threads  objects\n"
            "com.acme.Order        36    80.00     24      10     2    239        3        2\n"
            "int[]                  8    17.78      8       0     0     32        1        1\n"
            "(not resolved)         1     2.22      0       1     0      8        1        -\n"
            "  objects: different ones between two collections, at most\n");
  EXPECT_EQ(csv("classes"),
            "class,accesses,share,loads,stores,rmws,bytes,threads,objects\n"
            "com.acme.Order,36,80,24,10,2,239,3,2\n"
            "int[],8,17.78,8,0,0,32,1,1\n"
            "(not resolved),1,2.22,0,1,0,8,1,\n");
}

// The views are what users go on with: both must say the same.
TEST_F(Report, TablesAgreeWithTheViews) {
  EXPECT_EQ(without_header(csv("classes")),
            sql("SELECT v.class, accesses, replace(share || '', '.0', ''), loads, stores, rmws, bytes, threads, "
                "(SELECT count(DISTINCT object) FROM access a WHERE a.class_id = v.class_id AND part <> 'static' "
                "HAVING count(object) > 0) FROM v_class v ORDER BY accesses DESC"));
  EXPECT_EQ(without_header(csv("never-read")),
            sql("SELECT class, field, type, CASE is_static WHEN 1 THEN 'yes' ELSE 'no' END, stores, threads, "
                "CASE field WHEN 'made' THEN 'com.acme.Shop.run:107' ELSE 'com.acme.Shop.add:103' END "
                "FROM v_never_read ORDER BY stores DESC, class, field"));
  EXPECT_EQ(
      without_header(csv("threads")),
      sql("SELECT name, tid, kind, n, CASE round(100.0 * n / 45, 2) WHEN 57.78 THEN '57.78' WHEN 28.89 THEN '28.89' "
          "ELSE '13.33' END, l, s, r, c, started_ns, ended_ns, CASE name WHEN 'clerk-2' THEN 'int[]' ELSE "
          "'com.acme.Order' END FROM thread JOIN (SELECT thread_id, sum(count) n, sum(count * (op = 'load')) l, "
          "sum(count * (op = 'store')) s, sum(count * (op = 'rmw')) r, count(DISTINCT coalesce(class_id, 0)) c "
          "FROM access_count GROUP BY 1) ON thread_id = id ORDER BY n DESC"));
  EXPECT_EQ(without_header(csv("sites")),
            sql("SELECT method, line, sum(accesses) n, CASE line WHEN 107 THEN '60' ELSE '40' END, sum(loads), "
                "sum(stores), sum(rmws), 2, CASE line WHEN 107 THEN 'c1 interpreted' "
                "ELSE 'c2' END, CASE line WHEN 107 THEN 'com.acme.Order.total' ELSE 'int[].[element]' END "
                "FROM v_site GROUP BY method, line ORDER BY n DESC"));
}

TEST_F(Report, Fields) {
  EXPECT_EQ(report({"fields"}, selecting({"Order"})),
            "== Fields in their classes' layout\n"
            "com.acme.Order  40 bytes, 36 accesses\n"
            "offset  size  field        share %  loads  stores  rmws  threads  state\n"
            "     -     -  [mark word]     2.78      0       0     1        1\n"
            "    12     4  id              2.78      0       0     1        1\n"
            "    16     8  total          69.44     20       5     0        1  hot\n"
            "    24     4  name           13.89      4       1     0        2  hot\n"
            "    28     1  shipped         8.33      0       3     0        1  never read\n"
            "    29     3  (gap)              -      -       -     -        -\n"
            "    32     4  unused          0.00      0       0     0        0  not touched\n"
            "    36     4  (gap)              -      -       -     -        -\n"
            "   112     4  static made     2.78      0       1     0        1  never read\n"
            "  left out, no room: accesses, inherited from, type\n"
            "  hot: the fewest fields that make 80 % of the class's field accesses; cold:\n"
            "  under 1 %\n");
  ReportOptions wide = selecting({"Order"});
  wide.width = 200;
  EXPECT_EQ(
      report({"fields"}, wide),
      "== Fields in their classes' layout\n"
      "com.acme.Order  40 bytes, 36 accesses\n"
      "offset  size  field        type              accesses  share %  loads  stores  rmws  threads  state        "
      "inherited from\n"
      "     -     -  [mark word]                           1     2.78      0       0     1        1\n"
      "    12     4  id           int                      1     2.78      0       0     1        1               "
      "com.acme.Base\n"
      "    16     8  total        long                    25    69.44     20       5     0        1  hot\n"
      "    24     4  name         java.lang.String         5    13.89      4       1     0        2  hot\n"
      "    28     1  shipped      boolean                  3     8.33      0       3     0        1  never read\n"
      "    29     3  (gap)                                 -        -      -       -     -        -\n"
      "    32     4  unused       int                      0     0.00      0       0     0        0  not touched\n"
      "    36     4  (gap)                                 -        -      -       -     -        -\n"
      "   112     4  static made  int                      1     2.78      0       1     0        1  never read\n"
      "  hot: the fewest fields that make 80 % of the class's field accesses; cold: under 1 %\n");
}

// A cold field, and a reference's size where nobody has touched one.
TEST_F(Report, FieldsThatAreColdOrOfUnknownSize) {
  shop.change(
      "UPDATE tally SET count = 100000 WHERE field_id = 2 AND op = 'load'; "
      "DELETE FROM tally WHERE field_id = 3");
  std::string text = csv("fields", selecting({"Order"}));
  EXPECT_NE(text.find("com.acme.Order,12,4,id,int,1,0,0,0,1,1,cold,com.acme.Base\n"), std::string::npos) << text;
  EXPECT_NE(text.find("com.acme.Order,24,,name,java.lang.String,0,0,0,0,0,0,not touched,\n"), std::string::npos)
      << text;
}

TEST_F(Report, Sites) {
  EXPECT_EQ(report({"sites"}),
            "== Methods and lines that make the accesses\n"
            "method             line  accesses  share %  loads  stores  rmws  threads\n"
            "com.acme.Shop.run   107        27    60.00     20       7     0        2\n"
            "com.acme.Shop.add   103        18    40.00     12       4     2        2\n"
            "  left out, no room: code, touches most\n");
}

TEST_F(Report, Sharing) {
  ReportOptions wide;
  wide.width = 200;
  EXPECT_EQ(
      report({"sharing"}, wide),
      "== Classes that several threads touch\n"
      "class           threads  storing  loads  stores  objects  shared  shared accesses  most by  most share %\n"
      "com.acme.Order        3        2     24      12        2       1               30  clerk-1         72.22\n"
      "  storing: threads that store; shared: objects that two threads or more touch between two collections, and "
      "the accesses of these\n");
}

// clerk-1 stores `total`, clerk-2 loads `name` of the same object. That clerk-1 touches both makes no conflict.
TEST_F(Report, FalseSharing) {
  EXPECT_EQ(csv("false-sharing"),
            "stored,touched,worst_line,lines,stores,touches,storing,touching,at\n"
            "com.acme.Order.total,com.acme.Order.name,4,1,5,4,1,1,0x700000100\n");
  // Accesses of overlapping bytes are sharing, but not false.
  shop.change("UPDATE tally SET at = 16, size = 8 WHERE field_id = 3");
  EXPECT_EQ(csv("false-sharing"), "stored,touched,worst_line,lines,stores,touches,storing,touching,at\n");
  EXPECT_EQ(report({"false-sharing"}),
            "== False sharing: lines stored by one thread, touched elsewhere by another\n  none in the single rows\n");
}

TEST_F(Report, FalseSharingEndsAtACollectionAndAtALine) {
  shop.change("UPDATE event SET gc_id = 1 WHERE tally IN (SELECT id FROM tally WHERE field_id = 3)");
  EXPECT_EQ(csv("false-sharing"), "stored,touched,worst_line,lines,stores,touches,storing,touching,at\n");
  shop.change("UPDATE event SET gc_id = 0; UPDATE tally SET at = 64 WHERE field_id = 3");
  EXPECT_EQ(csv("false-sharing"), "stored,touched,worst_line,lines,stores,touches,storing,touching,at\n");
}

TEST_F(Report, NeverRead) {
  EXPECT_EQ(report({"never-read"}),
            "== Fields that are stored and never loaded\n"
            "class           field    type     static  stores  threads  stored most by\n"
            "com.acme.Order  shipped  boolean  no           3        1  com.acme.Shop.add:103\n"
            "com.acme.Order  made     int      yes          1        1  com.acme.Shop.run:107\n");
  // Of clerk-1 alone `name` is never loaded; the report says that this is not the whole truth.
  EXPECT_EQ(report({"never-read"}, selecting({}, {"clerk-1"})),
            "== Fields that are stored and never loaded\n"
            "class           field  type       static  stores  threads  stored most by\n"
            "com.acme.Order  name   ..String   no           1        1  com.acme.Shop.run:107\n"
            "  of the selected threads; another one may load them\n");
}

TEST_F(Report, SelectsClassesThreadsAndTimes) {
  EXPECT_EQ(without_header(csv("classes", selecting({"int[]"}))), "int[],8,100,8,0,0,32,1,1\n");
  EXPECT_EQ(without_header(csv("classes", selecting({"Base+"}))), "com.acme.Order,36,100,24,10,2,239,3,2\n");
  EXPECT_EQ(without_header(csv("threads", selecting({}, {"clerk-*", "!clerk-2"}))).substr(0, 29),
            "clerk-1,4242,platform,26,100,");
  // Each access is 100 ns behind the one before, and the first at 100 ns.
  ReportOptions early;
  early.selection.until = 2.05e-6;
  EXPECT_EQ(without_header(csv("classes", early)), "com.acme.Order,20,100,20,0,0,160,1,1\n");
  ReportOptions late;
  late.selection.since = 2.05e-6;
  late.selection.until = 2.55e-6;
  EXPECT_EQ(without_header(csv("classes", late)), "com.acme.Order,5,100,0,5,0,40,1,1\n");
  ReportOptions none;
  none.selection.since = 1e30;
  EXPECT_EQ(report({"classes"}, none),
            "== Classes by accesses\n  no accesses of what was selected: from 1000000000000000019884624838656.000 s\n");
}

TEST_F(Report, TopSaysWhatItLeavesOut) {
  ReportOptions options;
  options.top = 1;
  EXPECT_EQ(report({"classes"}, options),
            "== Classes by accesses\n"
            "class           accesses  share %  loads  stores  rmws  bytes  threads  objects\n"
            "com.acme.Order        36    80.00     24      10     2    239        3        2\n"
            "  2 more (--top 0 shows all)\n"
            "  objects: different ones between two collections, at most\n");
  EXPECT_EQ(csv("classes", options),
            "class,accesses,share,loads,stores,rmws,bytes,threads,objects\ncom.acme.Order,36,80,24,10,2,239,3,2\n");
}

// Ten rows are for eyes; data is whole unless --top says otherwise.
TEST_F(Report, DataIsNotCut) {
  shop.change(
      "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1029) INSERT INTO class "
      "SELECT i, 'c' || i, 'instance', NULL, 16, NULL FROM n;"
      "INSERT INTO tally(class_id, op, count, bytes) SELECT id, 'load', 1, 1 FROM class WHERE id >= 1000");
  std::string data = csv("classes");
  EXPECT_EQ(std::count(data.begin(), data.end(), '\n'), 1 + 3 + 30);
  EXPECT_NE(report({"classes"}).find("\n  23 more (--top 0 shows all)\n"), std::string::npos);
}

TEST_F(Report, Json) {
  ReportOptions options = selecting({"int[]"});
  options.format = "json";
  std::string path = "\"" + shop.path + "\"";
  EXPECT_EQ(
      report({"classes", "never-read"}, options),
      "{\n  \"database\": " + path +
          ",\n  \"selected\": \"classes int[]\",\n  \"sections\": {\n"
          "    \"classes\": {\n      \"title\": \"Classes by accesses\",\n      \"notes\": [\"objects: different "
          "ones between two collections, at most\"],\n      \"rows\": [\n        {\"class\": \"int[]\", "
          "\"accesses\": 8, \"share\": 100, \"loads\": 8, \"stores\": 0, \"rmws\": 0, \"bytes\": 32, "
          "\"threads\": 1, \"objects\": 1}\n      ]\n    },\n"
          "    \"never-read\": {\n      \"title\": \"Fields that are stored and never loaded\",\n      \"notes\": "
          "[],\n      \"rows\": []\n    }\n  }\n}\n");
}

TEST_F(Report, ProblemsAndCost) {
  shop.change(
      "DELETE FROM diagnostic; INSERT INTO diagnostic VALUES('traps', 1234567, 'traps'), ('self_ns', 2500000, "
      "'ns'), ('dropped', 7, 'records'), ('waits', 0, 'waits'), ('made_up', 3, 'things')");
  EXPECT_EQ(report({"problems"}),
            "== What the tool could not do\n"
            "what     value  meaning\n"
            "dropped      7  records lost after the database could not be written any more\n");
  EXPECT_EQ(without_header(csv("cost")).substr(without_header(csv("cost")).find('\n') + 1),
            "self_ns,2500000,ns,\"in the trap handler, all threads together\"\n"
            "traps,1234567,traps,accesses that trapped\n"
            "made_up,3,things,things\n");
  std::string text = report({"cost"});
  EXPECT_NE(text.find("\nself_ns     2.50 ms  in the trap handler"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntraps     1,234,567  accesses that trapped\n"), std::string::npos) << text;
  shop.change("DELETE FROM diagnostic");
  EXPECT_EQ(report({"problems"}),
            "== What the tool could not do\n"
            "  nothing: every access of the chosen classes and threads was recorded, with its\n"
            "  object\n");
}

// Whoever adds a counter says here what it means to a user (sections_cost.cc).
TEST_F(Report, EveryCounterHasAMeaning) {
#define X(name, unit) EXPECT_TRUE(has_meaning(#name)) << #name;
  CLASSACCESS_COUNTERS(X)
#undef X
  // The threads' and the writer's: each recording has a row for all of them.
  for (const std::string& name : query(shop.path, "SELECT name FROM diagnostic"))
    EXPECT_TRUE(has_meaning(name)) << name;
}

TEST_F(Report, Collapsed) {
  shop.change("UPDATE site SET method = 'com.acme.Shop.a;b' || char(10) WHERE kind = 'c2'");
  ReportOptions options;
  options.collapsed = true;
  EXPECT_EQ(report({}, options),
            "(not resolved);com.acme.Shop.a_b\\n;[unknown] 1\n"
            "com.acme.Order;com.acme.Shop.a_b\\n;[mark word] 1\n"
            "com.acme.Order;com.acme.Shop.a_b\\n;id 1\n"
            "com.acme.Order;com.acme.Shop.a_b\\n;name 4\n"
            "com.acme.Order;com.acme.Shop.a_b\\n;shipped 3\n"
            "com.acme.Order;com.acme.Shop.run;made 1\n"
            "com.acme.Order;com.acme.Shop.run;name 1\n"
            "com.acme.Order;com.acme.Shop.run;total 25\n"
            "int[];com.acme.Shop.a_b\\n;[element] 8\n");
}

TEST_F(Report, SourcesWithTheirAccesses) {
  std::string folder = make_directory() + "/src";
  std::filesystem::create_directories(folder + "/other");
  std::filesystem::create_directories(folder + "/main/com/acme");
  std::ofstream(folder + "/other/Shop.java") << "package other;\n";
  std::ofstream file(folder + "/main/com/acme/Shop.java");
  for (int line = 1; line <= 105; ++line) file << "\tline " << line << "\n";
  file.close();
  ReportOptions options;
  options.source = folder;
  EXPECT_EQ(report({}, options), "== " + folder +
                                     "/main/com/acme/Shop.java  45 accesses\n"
                                     "loads  stores  rmws   line\n"
                                     "    .       .     .    101      line 101\n"
                                     "    .       .     .    102      line 102\n"
                                     "   12       4     2    103      line 103\n"
                                     "    .       .     .    104      line 104\n"
                                     "    .       .     .    105      line 105\n"
                                     "  27 accesses of lines that this file does not have: is it another version?\n"
                                     "\n0 accesses by classes without a file here, 0 by code without lines\n");
  options.format = "csv";
  EXPECT_EQ(report({}, options), "file,line,loads,stores,rmws,threads,text\n" + folder +
                                     "/main/com/acme/Shop.java,103,12,4,2,2,\"    line "
                                     "103\"\n" +
                                     folder + "/main/com/acme/Shop.java,107,20,7,0,2,\n");
  options.format = "table";
  options.source = folder + "/other";
  EXPECT_EQ(report({}, options), "no file below '" + folder +
                                     "/other' belongs to a class that made accesses\n"
                                     "45 accesses by classes without a file here, 0 by code without lines\n");
  options.source = folder + "/none";
  EXPECT_EQ(report({}, options), "1: cannot read the folder '" + folder + "/none': No such file or directory");
}

TEST_F(Report, PagesAndCallsThatWereNotRecorded) {
  EXPECT_EQ(report({"pages", "transitions", "calls", "call-classes"}),
            "== Pages by touches\n  no pages: recorded without mode=pages\n\n"
            "== Which page was touched after which\n  no transitions: recorded without mode=pages\n\n"
            "== Functions by time\n  no calls: recorded without calls=\n\n"
            "== Classes that calls touch\n  no calls: recorded without calls=\n");
  // They are not printed when nobody asks.
  EXPECT_EQ(report({}).find("Pages"), std::string::npos);
}

TEST_F(Report, Calls) {
  shop.change(
      "INSERT INTO function VALUES(1, 'com.acme.Shop.run', 'java', NULL, NULL, 'already', NULL),"
      "(2, 'inflate', 'native', 'libz.so.1', 1, 'later', NULL), (3, 'crc32', 'native', 'libz.so.1', 2, 'later', "
      "'too short');"
      "INSERT INTO call_stat VALUES(1, 4, 10, 2, 8000, 5000, 100, 2000), (1, 5, 2, 0, 2000, 1000, 900, 1100),"
      "(2, 4, 1, 0, 3000000, 3000000, 3000000, 3000000);"
      "INSERT INTO call_class_count SELECT 1, 4, id, 'load', 30 FROM class WHERE name = 'com.acme.Order';"
      "INSERT INTO call_class_count SELECT 1, 5, id, 'store', 3 FROM class WHERE name = 'com.acme.Order'");
  EXPECT_EQ(csv("calls"),
            "function,kind,calls,untimed,total,self,mean,least,most,threads,library,refused\n"
            "inflate,native,1,0,3000000,3000000,3000000,3000000,3000000,1,libz.so.1,\n"
            "com.acme.Shop.run,java,12,2,10000,6000,1000,100,2000,2,,\n"
            "crc32,native,0,0,,,,,,0,libz.so.1,too short\n");
  EXPECT_EQ(report({"call-classes"}),
            "== Classes that calls touch\n"
            "function           class           accesses  loads  stores  rmws  threads\n"
            "com.acme.Shop.run  com.acme.Order        33     30       3     0        2\n");
  EXPECT_NE(report({}).find("== Functions by time\n"), std::string::npos);
}

}  // namespace
}  // namespace classaccess
