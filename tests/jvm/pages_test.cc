// mode=pages under a JVM: counts against a simulation that is fed with the accesses of mode=access, programs that go
// on unchanged, what the tables say.
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"
#include "tests/pages/simulation.h"

namespace classaccess {
namespace {

constexpr int64_t kPage = 4096, kPages = 1000;

class Pages : public JavaTest {
 protected:
  ProcessResult walk(const Jdk& jdk, const std::string& options) {
    JavaRun java{jdk, {"-Xint", "-XX:+UseSerialGC", "-Xmx64m"}, options, {"PageWalk", "1500"}, "", 120};
    ProcessResult result = run(java);
    expect_done(result);
    return result;
  }

  // What holds of every recording.
  void expect_consistent(Database& db) {
    EXPECT_EQ(db.text("SELECT status FROM run"), "complete");
    EXPECT_EQ(db.diagnostic("dropped"), 0);
    int64_t touches = db.integer("SELECT sum(count) FROM page_access");
    EXPECT_GT(touches, 0);
    EXPECT_EQ(db.diagnostic("page_touches"), touches);
    // A chain for each window that touches were counted in.
    int64_t chains = touches - db.integer("SELECT sum(count) FROM page_transition");
    EXPECT_GE(chains, 1);
    EXPECT_LE(chains, db.diagnostic("page_windows"));
    if (db.text("SELECT protection FROM run") == "mprotect") {
      EXPECT_EQ(chains, 1) << "all threads together";
    }
    EXPECT_EQ(db.integer("SELECT count(*) FROM page_transition WHERE from_page = to_page"), 0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM (SELECT DISTINCT page FROM page_access)"),
              db.integer("SELECT count(*) FROM page"));
    // A page is left as often as it is entered, but for the chains' ends.
    EXPECT_EQ(
        db.integer("WITH ends AS (SELECT to_page AS page, count AS n FROM page_transition UNION ALL SELECT "
                   "from_page, -count FROM page_transition) SELECT count(*) FROM (SELECT sum(n) AS more FROM ends "
                   "GROUP BY page) WHERE abs(more) > " +
                   std::to_string(chains)),
        0);
    EXPECT_EQ(
        db.integer("SELECT count(*) FROM page_access a LEFT JOIN thread t ON t.id = a.thread_id LEFT JOIN page p ON "
                   "p.page = a.page WHERE t.id IS NULL OR p.page IS NULL"),
        0);
    EXPECT_EQ(db.integer("SELECT count(*) FROM page WHERE first_touch_ns > last_touch_ns OR first_touch_ns < 0"), 0);
    EXPECT_EQ(
        db.integer("SELECT count(*) FROM page_class pc LEFT JOIN class c ON c.id = pc.class_id WHERE c.id IS NULL"), 0);
    EXPECT_EQ(
        db.integer("SELECT count(*) FROM (SELECT sum(bytes) AS b FROM page_class GROUP BY page) WHERE b > (SELECT "
                   "page_size FROM run)"),
        0);
  }
};

// The two largest arrays, as pages counted from that of their headers: the large one's
// 0..1000, the other's beyond.
std::vector<uint64_t> trace(Database& db) {
  auto arrays = db.rows(
      "SELECT object FROM access WHERE part IN ('length', 'element') AND op = 'load' GROUP BY object "
      "HAVING count(*) > 100 ORDER BY max(address) - min(address) DESC LIMIT 2");
  std::vector<uint64_t> pages;
  if (arrays.size() != 2) return pages;
  int64_t bases[2];
  for (int i = 0; i < 2; ++i) {
    bases[i] = db.integer("SELECT min(address) FROM access WHERE part = 'length' AND object = " + arrays[i][0]) / kPage;
  }
  for (const Row& row :
       db.rows("SELECT object, address FROM access WHERE part IN ('length', 'element') AND op = 'load' "
               "AND object IN (" +
               arrays[0][0] + "," + arrays[1][0] + ") ORDER BY seq")) {
    bool large = row[0] == arrays[0][0];
    auto page = static_cast<uint64_t>(std::stoll(row[1]) / kPage - bases[large ? 0 : 1]);
    pages.push_back(large ? page : 1000000 + page);
  }
  return pages;
}

TEST_F(Pages, AWalkIsTheSimulationOfItsAccesses) {
  for (const Jdk& jdk : full_run() ? installed_jdks() : oldest_and_newest_jdk()) {
    SCOPED_TRACE(jdk.name);
    std::string access_db = path(jdk.name + "-access.db");
    walk(jdk, "classes=byte[],threads=main,events=all,out=" + access_db);
    if (HasFailure()) return;
    Database recorded(access_db, true);
    std::vector<uint64_t> pages = trace(recorded);
    ASSERT_GT(pages.size(), 4u * 2 * 1500);
    for (int window : {1, 2, 4}) {
      SCOPED_TRACE("window " + std::to_string(window));
      test::Simulation simulation(static_cast<size_t>(window));
      for (uint64_t page : pages) simulation.touch(page);
      std::string name = path(jdk.name + "-" + std::to_string(window) + ".db");
      walk(jdk, "mode=pages,threads=main,window=" + std::to_string(window) + ",out=" + name);
      if (HasFailure()) return;
      Database db(name, true);
      expect_consistent(db);
      // The page of the header is left and entered for each element.
      int64_t header =
          db.integer("SELECT from_page FROM page_transition GROUP BY from_page ORDER BY count(*) DESC LIMIT 1");
      std::map<uint64_t, uint64_t> counts;
      for (const Row& row : db.rows("SELECT page - " + std::to_string(header) +
                                    " AS k, sum(count) FROM page_access WHERE op = 'load' AND k BETWEEN 1 AND 1000 "
                                    "GROUP BY k")) {
        counts[std::stoull(row[0])] = std::stoull(row[1]);
      }
      std::map<uint64_t, uint64_t> expected;
      for (const auto& [page, times] : simulation.counts) {
        if (page >= 1 && page <= static_cast<uint64_t>(kPages)) expected[page] = times;
      }
      EXPECT_EQ(counts, expected);
      EXPECT_EQ(counts.size(), static_cast<size_t>(kPages));
      std::map<std::pair<uint64_t, uint64_t>, uint64_t> transitions, expected_transitions;
      for (const Row& row :
           db.rows("SELECT from_page - " + std::to_string(header) + " AS f, to_page - " + std::to_string(header) +
                   " AS t, count FROM page_transition WHERE f BETWEEN 0 AND 1000 AND t BETWEEN 0 AND 1000")) {
        transitions[{std::stoull(row[0]), std::stoull(row[1])}] = std::stoull(row[2]);
      }
      for (const auto& [pair, times] : simulation.transitions) {
        if (pair.first <= 1000 && pair.second <= 1000) expected_transitions[pair] = times;
      }
      EXPECT_EQ(transitions, expected_transitions);
    }
  }
}

// Four threads at once over the same pages. With keys each has a window of its own: its counts are those of a
// simulation of this thread alone. With mprotect the window is everybody's, and only the chain is known.
TEST_F(Pages, WalkersAtOnceAreEachTheirSimulation) {
  constexpr int kWalkers = 4, kTouches = 1200;
  for (const Jdk& jdk : full_run() ? installed_jdks() : oldest_and_newest_jdk()) {
    for (const char* options : {"window=1", "window=2", "window=4", "window=4,protect=mprotect"}) {
      SCOPED_TRACE(jdk.name + " " + options);
      std::string name = path(test_name(jdk.name + options) + ".db");
      JavaRun java{jdk,
                   {"-Xint", "-XX:+UseSerialGC", "-Xmx64m"},
                   std::string("mode=pages,threads=walker-*,") + options + ",out=" + name,
                   {"PageWalkers", std::to_string(kTouches), std::to_string(kWalkers)},
                   "",
                   120};
      expect_done(run(java));
      if (HasFailure()) return;
      Database db(name, true);
      expect_consistent(db);
      if (std::string(options).find("mprotect") != std::string::npos) continue;
      EXPECT_EQ(db.diagnostic("page_windows"), kWalkers);
      EXPECT_EQ(db.diagnostic("page_windows_shared"), 0);
      // The page of the array's header is left and entered for each element.
      const std::string header =
          db.text("SELECT from_page FROM page_transition GROUP BY from_page ORDER BY sum(count) DESC LIMIT 1");
      // 1, or 2 if the header is at the very end of its page.
      const int64_t first = db.integer("SELECT min(page) - " + header + " FROM page_access WHERE page > " + header);
      using Pair = std::pair<uint64_t, uint64_t>;
      std::map<Pair, uint64_t> transitions, expected_transitions;
      for (int walker = 0; walker < kWalkers; ++walker) {
        SCOPED_TRACE("walker-" + std::to_string(walker));
        test::Simulation simulation(static_cast<size_t>(db.integer("SELECT " + std::string(1, options[7]))));
        for (uint64_t page : test::walk(test::kOrders[walker], kPages, kTouches)) {
          simulation.touch(0);
          simulation.touch(page + static_cast<uint64_t>(first));
        }
        std::map<uint64_t, uint64_t> counts;
        for (const Row& row :
             db.rows("SELECT a.page - " + header +
                     " AS k, sum(a.count) FROM page_access a JOIN thread t ON t.id = a.thread_id WHERE "
                     "t.name = 'walker-" +
                     std::to_string(walker) + "' AND k BETWEEN 1 AND 1002 GROUP BY k")) {
          counts[std::stoull(row[0])] = std::stoull(row[1]);
        }
        std::map<uint64_t, uint64_t> expected = simulation.counts;
        expected.erase(0);  // shared with other objects
        EXPECT_EQ(counts, expected);
        for (const auto& [pair, times] : simulation.transitions) expected_transitions[pair] += times;
      }
      for (const Row& row :
           db.rows("SELECT from_page - " + header + " AS f, to_page - " + header +
                   " AS t, count FROM page_transition WHERE f BETWEEN 0 AND 1002 AND t BETWEEN 0 AND 1002")) {
        transitions[{std::stoull(row[0]), std::stoull(row[1])}] = std::stoull(row[2]);
      }
      EXPECT_EQ(transitions, expected_transitions);
    }
  }
}

// More threads than there are keys go on as before; the totals are those of the windows there are.
TEST_F(Pages, MoreThreadsThanKeys) {
  const Jdk jdk = newest_jdk();
  std::string name = path("many.db");
  JavaRun java{
      jdk, {"-XX:+UseSerialGC", "-Xmx64m"}, "mode=pages,window=2,out=" + name, {"PageWalkers", "12000", "40"}, "", 120};
  JavaRun plain = java;
  plain.agent_options = std::nullopt;
  ProcessResult told = run(plain), result = run(java);
  expect_done(result);
  EXPECT_EQ(result.out, told.out);
  if (HasFailure()) return;
  Database db(name, true);
  expect_consistent(db);
  EXPECT_GE(
      db.integer("SELECT count(DISTINCT thread_id) FROM page_access JOIN thread t ON t.id = thread_id WHERE t.name "
                 "LIKE 'walker-%'"),
      40);
  // Twelve keys at most, and ten walkers (ping-pong) trap too seldom at pages in their windows.
  EXPECT_GE(db.diagnostic("page_windows_shared"), 40 - 12 - 10);
  EXPECT_LE(db.diagnostic("page_windows_shared"), 40);
  EXPECT_NE(result.err.find("more threads than protection keys"), std::string::npos) << result.err;
}

TEST_F(Pages, ProgramsGoOnUnchanged) {
  struct Combination {
    Collector collector;
    const char* options;
  };
  const std::vector<Combination> all = {
      {Collector::kSerial, ""},
      {Collector::kG1, ",window=4"},
      {Collector::kParallel, ",page=64k,window=3"},
      {Collector::kSerial, ",protect=mprotect,window=2"},
      {Collector::kShenandoah, ",page=2m"},
      {Collector::kG1, ",twin=off,window=16"},
      {Collector::kParallel, ",protect=mprotect,twin=off,page=64k"},
      {Collector::kG1, ",heap=young"},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<Jdk> jdks =
        full_run() ? installed_jdks() : std::vector<Jdk>{i % 2 == 0 ? newest_jdk() : oldest_jdk()};
    for (const Jdk& jdk : jdks) {
      std::vector<std::string> flags = collector_flags(all[i].collector);
      flags.push_back("-Xmx64m");
      if (!jdk_accepts(jdk, flags)) continue;
      SCOPED_TRACE(jdk.name + shell_line(flags) + all[i].options);
      std::string name = path(std::to_string(i) + jdk.name + ".db");
      JavaRun plain{jdk, flags, std::nullopt, {"Critical"}, "", 120};
      ProcessResult told = run(plain);
      expect_done(told);
      JavaRun traced = plain;
      traced.agent_options = "mode=pages,out=" + name + all[i].options;
      ProcessResult result = run(traced);
      expect_done(result);
      EXPECT_EQ(result.out, told.out);
      if (HasFailure()) return;
      Database db(name, true);
      ASSERT_TRUE(db.is_open()) << db.error();
      expect_consistent(db);
      EXPECT_EQ(db.diagnostic("page_closes_refused"), 0);
    }
  }
}

TEST_F(Pages, H2GoesOnUnchanged) {
  const std::string jar = "/usr/share/java/h2.jar";
  if (!file_exists(jar)) GTEST_SKIP() << jar << " is not there: apt-get install libh2-java";
  struct Combination {
    Collector collector;
    const char* options;
  };
  std::vector<Combination> all = {{Collector::kG1, ",window=64"}};
  if (full_run()) {
    all = {{Collector::kG1, ""},
           {Collector::kShenandoah, ",window=32"},
           {Collector::kParallel, ",page=64k,window=8"},
           {Collector::kG1, ",window=64,protect=mprotect"},
           {Collector::kSerial, ",window=64,twin=off"},
           {Collector::kG1, ",window=16,heap=old"}};
  }
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    for (const Combination& c : all) {
      std::vector<std::string> flags = collector_flags(c.collector);
      flags.push_back("-Xmx64m");
      if (!jdk_accepts(jdk, flags)) continue;
      SCOPED_TRACE(jdk.name + shell_line(flags) + c.options);
      std::string name = path(test_name(jdk.name + shell_line(flags) + c.options) + ".db");
      JavaRun plain{jdk, flags, std::nullopt, {"SqlScript"}, harness_classes() + ":" + jar, 120};
      ProcessResult told = run(plain);
      expect_done(told);
      JavaRun traced = plain;
      traced.agent_options = "mode=pages,out=" + name + c.options;
      ProcessResult result = run(traced);
      expect_done(result);
      EXPECT_EQ(result.out, told.out);
      if (HasFailure()) return;
      Database db(name, true);
      expect_consistent(db);
    }
  }
}

TEST_F(Pages, AreNamedByWhatLivesThere) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    SCOPED_TRACE(jdk.name);
    std::string name = path(jdk.name + ".db");
    walk(jdk, "mode=pages,window=4,out=" + name);
    if (HasFailure()) return;
    Database db(name, true);
    // The large array's pages hold nothing else.
    EXPECT_GE(db.integer("SELECT count(*) FROM v_page WHERE classes = 'byte[] 100.0%' AND region = 'old'"), kPages - 1);
    EXPECT_GE(db.integer("SELECT count(*) FROM v_page WHERE classes LIKE '%java.lang.Class%'"), 1);
    EXPECT_EQ(db.integer("SELECT count(*) FROM v_page WHERE touches <> loads + stores + rmws"), 0);
    EXPECT_EQ(db.text("SELECT address FROM v_page ORDER BY page LIMIT 1"),
              db.text("SELECT printf('0x%x', heap_start + 4096 * (SELECT min(page) FROM page)) FROM run"));
  }
}

}  // namespace
}  // namespace classaccess
