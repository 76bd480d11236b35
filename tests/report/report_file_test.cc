// Files that are no finished recording, recordings that have nothing, names that have anything.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/report/recorded_shop.h"

namespace classaccess {
namespace {

std::string file_with(const std::string& name, const std::string& contents) {
  std::string path = make_directory() + "/" + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ReportFile, ThatIsNotThere) {
  EXPECT_EQ(report_of("/no/such.db"), "1: cannot read '/no/such.db': No such file or directory");
  EXPECT_FALSE(exists("/no/such.db"));
  std::string folder = make_directory();
  EXPECT_EQ(report_of(folder), "1: cannot read '" + folder + "': not a regular file");
  // A name that SQLite would take for something else.
  EXPECT_EQ(report_of(":memory:"), "1: cannot read ':memory:': No such file or directory");
}

TEST(ReportFile, ThatIsNoRecording) {
  std::string empty = file_with("empty.db", "");
  EXPECT_EQ(report_of(empty), "1: '" + empty + "' is no recording of classaccess");
  std::string text = file_with("text.db", std::string(4096, 'x'));
  EXPECT_EQ(report_of(text), "1: '" + text + "' is no SQLite database");
  std::string other = make_directory() + "/other.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(other.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "CREATE TABLE run(a)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(report_of(other), "1: '" + other + "' is no recording of classaccess");
}

TEST(ReportFile, OfAnotherVersion) {
  RecordedShop shop;
  shop.change("PRAGMA user_version = 7");
  EXPECT_EQ(report_of(shop.path), "1: '" + shop.path +
                                      "' has version 7, this command reads version 1: use the classaccess that has "
                                      "recorded it");
}

TEST(ReportFile, ThatWasCut) {
  RecordedShop shop;
  shop.record();
  shop.finish();
  std::string whole = bytes_of(shop.path);
  ASSERT_GT(whole.size(), 8192u);
  std::string half = file_with("half.db", whole.substr(0, whole.size() / 2));
  std::string report = report_of(half);
  EXPECT_EQ(report.substr(0, report.find(": the file")),
            "1: cannot read '" + half + "': database disk image is malformed");
}

TEST(ReportFile, ThatIsLocked) {
  RecordedShop shop;
  shop.finish();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(shop.path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(report_of(shop.path), "1: cannot read '" + shop.path +
                                      "': database is locked: try again when the process that has locked it lets go");
  sqlite3_close(db);
}

// While the JVM runs: what is committed, all tables of one moment, and the writer goes on.
TEST(ReportFile, ThatIsStillBeingWritten) {
  RecordedShop shop;
  shop.record();
  ASSERT_TRUE(shop.writer.flush());
  ASSERT_TRUE(exists(shop.path + "-wal"));
  std::string report = report_of(shop.path);
  EXPECT_NE(report.find("status       running (it goes on, or the JVM was killed; all but the last second\n"
                        "             is here)\n"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("com.acme.Order        36    80.00"), std::string::npos) << report;
  EXPECT_NE(report.find("not_ended      1  the recording goes on, or the JVM was killed\n"), std::string::npos)
      << report;
  shop.record();
  ASSERT_TRUE(shop.writer.flush());
  EXPECT_NE(report_of(shop.path).find("com.acme.Order        72    80.00"), std::string::npos);
  shop.finish();
  EXPECT_NE(report_of(shop.path).find("status       complete\n"), std::string::npos);
  EXPECT_FALSE(exists(shop.path + "-wal"));
}

// kill -9 leaves the -wal; the report changes neither file.
TEST(ReportFile, ThatWasLeftByAKill) {
  RecordedShop shop;
  shop.record();
  ASSERT_TRUE(shop.writer.flush());
  std::string folder = make_directory(), copy = folder + "/copy.db";
  std::filesystem::copy(shop.path, copy);
  std::filesystem::copy(shop.path + "-wal", copy + "-wal");
  std::string wal = bytes_of(copy + "-wal");
  EXPECT_NE(report_of(copy).find("com.acme.Order        36    80.00"), std::string::npos);
  EXPECT_EQ(bytes_of(copy + "-wal"), wal);
}

TEST(ReportFile, ThatHasNothing) {
  RecordedShop shop;
  shop.change("DELETE FROM run; DELETE FROM diagnostic; DELETE FROM thread");
  EXPECT_EQ(report_of(shop.path),
            "== Run\n  the recording has not begun\n\n"
            "== Classes by accesses\n  no accesses\n\n"
            "== Fields in their classes' layout\n  no accesses\n\n"
            "== Methods and lines that make the accesses\n  no accesses\n\n"
            "== Threads by accesses\n  no accesses\n\n"
            "== Classes that several threads touch\n  no accesses\n\n"
            "== False sharing: lines stored by one thread, touched elsewhere by another\n  no accesses\n\n"
            "== Fields that are stored and never loaded\n  no accesses\n\n"
            "== What the tool could not do\n"
            "  nothing: every access of the chosen classes and threads was recorded, with its\n  object\n\n"
            "== What the tool did and cost\n  nothing was counted\n");
  ReportOptions options;
  options.collapsed = true;
  EXPECT_EQ(report_of(shop.path, {}, options), "");
  options.collapsed = false;
  options.selection.threads = {"main"};
  EXPECT_EQ(report_of(shop.path, {}, options), "1: no thread of this recording matches 'main'");
}

TEST(ReportFile, WithFewerRowsThanAccesses) {
  RecordedShop shop;
  shop.record();
  shop.change("DELETE FROM event WHERE tally NOT IN (SELECT id FROM tally WHERE field_id = 2 AND op = 'load')");
  EXPECT_EQ(report_of(shop.path, {"false-sharing"}),
            "== False sharing: lines stored by one thread, touched elsewhere by another\n"
            "  none in the single rows\n"
            "  from single rows: the first 20 of 45 accesses (events=N), 2.00 us of the\n"
            "  recording\n");
  std::string problems = report_of(shop.path, {"problems"});
  EXPECT_NE(problems.find("\nrows_not_kept     25  "), std::string::npos) << problems;
  ReportOptions options;
  options.selection.since = 0;
  std::string classes = report_of(shop.path, {"classes"}, options);
  EXPECT_NE(classes.find("com.acme.Order        20   100.00"), std::string::npos) << classes;
  EXPECT_NE(classes.find("the first 20 of 45 accesses"), std::string::npos) << classes;
}

TEST(ReportFile, WithoutSingleRows) {
  RecordedShop shop(0);
  shop.record();
  shop.finish();
  EXPECT_EQ(report_of(shop.path, {"false-sharing"}),
            "== False sharing: lines stored by one thread, touched elsewhere by another\n"
            "  no single rows were kept (events=off)\n");
  std::string classes = report_of(shop.path, {"classes"});
  EXPECT_NE(classes.find("com.acme.Order        36    80.00     24      10     2    239        3        -\n"),
            std::string::npos)
      << classes;
}

// Rows that a damaged or foreign writer could leave: nothing breaks, sums stay.
TEST(ReportFile, WithRowsThatDoNotJoin) {
  RecordedShop shop;
  shop.record();
  shop.change(
      "DELETE FROM class WHERE name = 'int[]'; UPDATE class SET super_id = id WHERE name = 'com.acme.Order'; "
      "DELETE FROM site WHERE kind = 'c2'; UPDATE thread SET name = NULL; UPDATE tally SET part = 'strange' "
      "WHERE field_id = 4; DELETE FROM field WHERE id = 2");
  std::string report = report_of(shop.path);
  EXPECT_NE(report.find("(not resolved)         9    20.00"), std::string::npos) << report;
  EXPECT_NE(report.find("(unknown)             -        18    40.00"), std::string::npos) << report;
  EXPECT_NE(report.find("(no name) #"), std::string::npos) << report;
}

TEST(ReportFile, WithNamesThatHaveAnything) {
  RecordedShop shop;
  shop.record();
  shop.change(
      "UPDATE class SET name = 'a\"b,c''' || char(27) || '[31m' || char(10) || '%s' WHERE name = 'int[]'; "
      "UPDATE thread SET name = 'clerk-1' WHERE name = 'clerk-2'; UPDATE thread SET name = '' WHERE name = 'main'");
  std::string report = report_of(shop.path, {"classes"});
  EXPECT_NE(report.find("\na\"b,c'\\x1b[31m\\n%s         8    17.78"), std::string::npos) << report;
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
  ReportOptions options;
  options.format = "csv";
  std::string csv = report_of(shop.path, {"classes"}, options);
  EXPECT_NE(csv.find("\n\"a\"\"b,c'\x1b[31m\n%s\",8,17.78,"), std::string::npos) << csv;
  options.format = "json";
  std::string json = report_of(shop.path, {"classes"}, options);
  EXPECT_NE(json.find("{\"class\": \"a\\\"b,c'\\u001b[31m\\u000a%s\", \"accesses\": 8"), std::string::npos) << json;
  // Threads of the same name, and one without.
  std::string threads = report_of(shop.path, {"threads"});
  EXPECT_NE(threads.find("\nclerk-1 #2 "), std::string::npos) << threads;
  EXPECT_NE(threads.find("\nclerk-1 #3 "), std::string::npos) << threads;
  EXPECT_NE(threads.find("\n(no name) #1 "), std::string::npos) << threads;
}

TEST(ReportFile, WithClassesOfTheSameName) {
  RecordedShop shop;
  shop.record();
  shop.change("UPDATE class SET name = 'com.acme.Order' WHERE name = 'int[]'");
  std::string report = report_of(shop.path, {"classes"});
  EXPECT_NE(report.find("com.acme.Order #2        36"), std::string::npos) << report;
  EXPECT_NE(report.find("com.acme.Order #4         8"), std::string::npos) << report;
}

TEST(ReportUsage, IsChecked) {
  RecordedShop shop;
  shop.finish();
  ReportOptions options;
  EXPECT_EQ(report_of(shop.path, {"clases"}).substr(0, 50), "2: there is no section 'clases'; there are: run, c");
  options.selection.classes = {"com.acme.Nothing"};
  EXPECT_EQ(
      report_of(shop.path, {}, options),
      "1: no class of this recording matches 'com.acme.Nothing' (`*` stands for any characters but dots, `**` for "
      "any; a name without a dot is one in any package)");
  options = {};
  options.format = "xml";
  EXPECT_EQ(report_of(shop.path, {}, options), "2: there is no format 'xml'; there are: table, csv, json");
  options.format = "csv";
  EXPECT_EQ(report_of(shop.path, {}, options).substr(0, 57),
            "2: --format csv writes one table: give one SECTION of run");
  options = {};
  options.selection.since = 2;
  options.selection.until = 2;
  EXPECT_EQ(report_of(shop.path, {}, options), "2: --since is not before --until");
  options = {};
  options.collapsed = true;
  EXPECT_EQ(report_of(shop.path, {"run"}, options), "2: --collapsed takes no SECTION");
  options.source = "/tmp";
  EXPECT_EQ(report_of(shop.path, {}, options), "2: --collapsed and --source are two reports: give one of them");
}

// mode=pages: the accesses' tables are not printed, the pages' are.
TEST(ReportFile, OfPages) {
  RecordedShop shop;
  auto touch = [&](ThreadState* thread, uint32_t page, uint32_t from, Op op, uint64_t t_ns) {
    AccessRecord record = {};
    record.kind = RecordKind::kPage;
    record.address = page;
    record.object = from;
    record.op = op;
    record.t_ns = shop.world.started_ns + t_ns;
    World::push(thread, record);
  };
  touch(shop.main, 7, UINT32_MAX, Op::kLoad, 5000);
  touch(shop.main, 9, 7, Op::kStore, 6000);
  touch(shop.clerk1, 7, 9, Op::kLoad, 300000000);
  PageContents contents;
  contents.shares = {{7, shop.order->id, 1024}};
  contents.regions[7] = "eden";
  shop.writer.put_page_contents(contents);
  shop.finish();
  ReportOptions wide;
  wide.width = 120;
  EXPECT_EQ(
      report_of(shop.path, {"pages"}, wide),
      "== Pages by touches\n"
      "page  address      region  touches  loads  stores  rmws  threads    first       last  classes\n"
      "   7  0x700007000  eden          2      2       0     0        2  5.00 us  300.00 ms  com.acme.Order 25.0%\n"
      "   9  0x700009000                1      0       1     0        1  6.00 us    6.00 us\n"
      "  3 touches of 2 pages; region and classes are those at the end\n");
  EXPECT_EQ(report_of(shop.path, {"transitions"}),
            "== Which page was touched after which\n"
            "from page  to page  count  share %  from classes          to classes\n"
            "        7        9      1    50.00  com.acme.Order 25.0%\n"
            "        9        7      1    50.00                        com.acme.Order 25.0%\n");
  std::string all = report_of(shop.path);
  EXPECT_EQ(all.find("== Classes"), std::string::npos) << all;
  EXPECT_NE(all.find("page_touches  3\n"), std::string::npos) << all;
  ReportOptions options;
  options.format = "csv";
  options.selection.since = 0.25;
  std::string csv = report_of(shop.path, {"pages"}, options);
  EXPECT_EQ(csv.substr(csv.find('\n')), "\n7,0x700007000,eden,1,1,0,0,1,5000,300000000,com.acme.Order 25.0%\n");
  options.selection.since.reset();
  options.selection.threads = {"main"};
  options.selection.classes = {"Order"};
  csv = report_of(shop.path, {"pages"}, options);
  EXPECT_EQ(csv.substr(csv.find('\n')), "\n7,0x700007000,eden,1,1,0,0,1,5000,300000000,com.acme.Order 25.0%\n");
}

}  // namespace
}  // namespace classaccess
