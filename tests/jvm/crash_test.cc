// The database while the JVM runs and after kill -9 (issue 2, test 6).
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/ticker_file.h"

namespace classaccess {
namespace {

class Crash : public JavaTest {
 protected:
  JavaRun ticker(const Jdk& jdk, const std::string& round, int seconds) const {
    return JavaRun{jdk,
                   {},
                   "classes=Ticker$Counter,out=" + path(round + ".db"),
                   {"Ticker", path(round + ".ticks"), std::to_string(seconds)},
                   "",
                   120};
  }

  static int64_t stores_recorded(Database& db, int thread) {
    return db.integer(
        "SELECT coalesce(sum(a.count), 0) FROM access_count a JOIN class c ON c.id = a.class_id "
        "JOIN field f ON f.id = a.field_id JOIN thread t ON t.id = a.thread_id "
        "WHERE c.name = 'Ticker$Counter' AND f.name = 'ticks' AND a.op = 'store' "
        "AND t.name = 'ticker-" +
        std::to_string(thread) + "'");
  }

  // Kills one JVM after that many seconds and looks at what is left. Returns the seconds lost, an
  // upper bound as fine as the ticker's lines.
  double kill_round(const Jdk& jdk, const std::string& round, double after, double most_lost) {
    ProcessSpec process_spec = spec(ticker(jdk, round, 60));
    Process process(process_spec);
    sleep_seconds(after);
    EXPECT_FALSE(process.ended()) << process.wait().err;
    double killed_at = monotonic_seconds();
    process.kill_now();
    EXPECT_EQ(process.wait().signal, SIGKILL);

    const std::string file = path(round + ".db");
    bool started = !ticker_lines(path(round + ".ticks"), 0).empty();
    if (!file_exists(file)) {
      EXPECT_FALSE(started) << "the program ran without a database";
      return 0;
    }
    Database db(file, false);
    EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
    if (db.integer("SELECT count(*) FROM sqlite_master WHERE name = 'run'") == 0) {
      EXPECT_FALSE(started) << "the program ran without tables";
      return 0;
    }
    db.expect_whole();
    double lost = 0;
    for (int thread : {0, 1}) {
      std::vector<TickerLine> lines = ticker_lines(path(round + ".ticks"), thread);
      int64_t recorded = stores_recorded(db, thread);
      EXPECT_GE(recorded, ticker_stores_at(lines, killed_at - most_lost))
          << "thread " << thread << ", more than " << most_lost << " s lost";
      double kept_until = lines.empty() ? killed_at : lines.front().seconds;
      for (const TickerLine& line : lines) {
        if (line.stores <= recorded) kept_until = line.seconds;
      }
      lost = std::max(lost, killed_at - kept_until);
    }
    return lost;
  }
};

// Most moments are early, where files and tables are being made; some late enough for the loss to show.
TEST_F(Crash, DatabaseIsWholeAfterKill) {
  const char* given = std::getenv("CLASSACCESS_SEED");
  unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  std::cout << "CLASSACCESS_SEED=" << seed << std::endl;
  std::mt19937 random(seed);
  const double most_lost = full_run() ? 1.0 : 5.0;
  double worst = 0;
  for (int i = 0; i < 20; i++) {
    bool late = i % 4 == 3;
    double after = std::uniform_real_distribution<double>(late ? 6.5 : 0.02, late ? 8.0 : 3.0)(random);
    const Jdk& jdk = installed_jdks()[static_cast<size_t>(i) % installed_jdks().size()];
    SCOPED_TRACE(jdk.name + ", killed after " + std::to_string(after) + " s, CLASSACCESS_SEED=" + std::to_string(seed));
    worst = std::max(worst, kill_round(jdk, "round" + std::to_string(i), after, most_lost));
    if (HasFailure()) return;
  }
  std::cout << "most lost: " << worst << " s\n";
}

TEST_F(Crash, ReaderSeesCountsGrow) {
  Process process(spec(ticker(newest_jdk(), "live", 8)));
  ASSERT_TRUE(wait_until([this] { return !ticker_lines(path("live.ticks"), 0).empty(); }, 30)) << process.wait().err;
  // A commit comes every 0.2 s on a quiet machine; a busy disk may hold one up for seconds.
  int64_t seen = 0;
  int growths = 0;
  while (!process.ended() && growths < 5) {
    double since = monotonic_seconds();
    ASSERT_TRUE(wait_until(
        [this, &seen, &process] {
          Database db(path("live.db"), true);
          if (!db.is_open()) return false;
          EXPECT_EQ(db.text("SELECT status FROM run"), process.ended() ? "complete" : "running");
          int64_t now = stores_recorded(db, 0);
          bool grown = now > seen;
          seen = now;
          return grown || process.ended();
        },
        5))
        << "no growth beyond " << seen << " stores";
    std::cout << "grown after " << monotonic_seconds() - since << " s\n";
    growths++;
    sleep_seconds(0.3);
  }
  expect_done(process.wait());
  EXPECT_GE(growths, 4);
  Database db(path("live.db"), true);
  db.expect_whole();
  EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
  for (int thread : {0, 1}) {
    // The last line is written after the last store.
    EXPECT_EQ(stores_recorded(db, thread), ticker_lines(path("live.ticks"), thread).back().stores);
  }
}

}  // namespace
}  // namespace classaccess
