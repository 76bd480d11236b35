// Another process locks the database while the JVM runs: the application does not notice,
// and nothing is lost.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/ticker_file.h"

namespace classaccess {
namespace {

class StoreFailures : public JavaTest, public ::testing::WithParamInterface<Jdk> {};

TEST_P(StoreFailures, ALockHeldForThreeSeconds) {
  Process process(spec(JavaRun{
      GetParam(), {}, "classes=Ticker$Counter,out=" + path("run.db"), {"Ticker", path("ticks"), "7"}, "", 120}));
  ASSERT_TRUE(wait_until([this] { return !ticker_lines(path("ticks"), 1).empty(); }, 60)) << process.wait().err;

  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path("run.db").c_str(), &db, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  sqlite3_busy_timeout(db, 5000);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  double locked_at = monotonic_seconds();
  sleep_seconds(3);
  ASSERT_FALSE(process.ended()) << process.wait().err;
  double released_at = monotonic_seconds();
  ASSERT_EQ(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);

  ProcessResult result = process.wait();
  expect_done(result);
  EXPECT_EQ(lines_with(result.err, "classaccess: "),
            (std::vector<std::string>{"another process has locked '" + path("run.db") +
                                      "': what is recorded waits in memory until it lets go"}));
  Database recorded(path("run.db"), true);
  recorded.expect_whole();
  EXPECT_EQ(recorded.text("SELECT status FROM run"), "complete");
  EXPECT_EQ(recorded.diagnostic("dropped"), 0);
  for (int thread : {0, 1}) {
    std::vector<TickerLine> lines = ticker_lines(path("ticks"), thread);
    // A thread nobody drains stops after the 4096 records its ring holds.
    EXPECT_GT(ticker_stores_at(lines, released_at) - ticker_stores_at(lines, locked_at + 0.1), 4 * 4096);
    EXPECT_EQ(
        recorded.integer("SELECT sum(count) FROM access_count a JOIN field f ON f.id = a.field_id JOIN thread t ON "
                         "t.id = a.thread_id WHERE f.name = 'ticks' AND a.op = 'store' AND t.name = 'ticker-" +
                         std::to_string(thread) + "'"),
        lines.back().stores);
  }
}

INSTANTIATE_TEST_SUITE_P(Jdks, StoreFailures, ::testing::ValuesIn(installed_jdks()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace classaccess
