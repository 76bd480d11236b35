// Counts of a recording against those of a program that knows what it did (issue 2, tests 1 and 2).
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "tests/jvm/database.h"
#include "tests/jvm/expectations.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/matrix.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

const char kHeldClasses[] = "held.**,held.Cell[],int[][]";
const char kPrimitiveArrays[] = ",boolean[],byte[],char[],short[],int[],long[],float[],double[]";

class ExactCounts : public CountsTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void check();

  // Under churn a primitive array is not selected: zeroing 40 MB of byte[] would be most of the rows.
  static bool selected(const Expectation& e) {
    return !GetParam().churn || e.class_name.rfind("held.", 0) == 0 || e.class_name == "int[][]";
  }

  // Barriers of a collector that marks concurrently load, at the program's own site, the reference that
  // a store replaces. So with collections meanwhile loads of references are a lower bound.
  static bool loads_for_collector(const Expectation& e) {
    bool reference = e.field == "o" || e.field == "link" || e.field == "third" || e.class_name == "held.Cell[]" ||
                     e.class_name == "int[][]";
    return GetParam().churn && GetParam().concurrent_marking() && reference;
  }

  void record() {
    const Mode& mode = GetParam();
    if (!jdk_accepts(mode.jdk, mode.flags())) GTEST_SKIP() << mode.jdk.home << " does not take " << mode.name();
    bool interpreted = mode.execution == Execution::kInterpreted;
    std::string options = std::string("classes=") + kHeldClasses + (mode.churn ? "" : kPrimitiveArrays) +
                          ",out=" + path("run.db") + ",events=all" + mode.agent_options();
    JavaRun java{mode.jdk, mode.flags(), options, {"counts.ExactCounts"}, "", 180};
    java.program.push_back(std::to_string(mode.threads));
    java.program.push_back(mode.rounds != 0 ? std::to_string(mode.rounds)
                           : mode.churn     ? "10"
                           : interpreted    ? "3"
                                            : "8");
    java.program.push_back(mode.churn ? "100" : "0");
    if (!mode.refusal().empty()) return expect_refused(java);
    expectations_ = run_counts(java);
    if (HasFailure()) return;
    ASSERT_GT(expectations_.size(), 100u);
    ASSERT_FALSE(file_exists(path("run.db-wal"))) << "one file remains after a normal end";
    ASSERT_FALSE(file_exists(path("run.db-shm"))) << "one file remains after a normal end";
    db_.emplace(path("run.db"), true);
    ASSERT_TRUE(db_->is_open()) << db_->error();
    counts_ = read_counts(*db_);
    indexes_ = read_indexes(*db_);
  }

  // One message with the reason, status 1, no database, and the program has not run.
  void expect_refused(const JavaRun& java) {
    ProcessResult result = run(java);
    expect_status(result, 1);
    std::vector<std::string> said = lines_with(result.err, "classaccess: ");
    ASSERT_EQ(said.size(), 1u) << result.err;
    EXPECT_NE(said[0].find(GetParam().refusal()), std::string::npos) << said[0];
    EXPECT_EQ(result.out.find("CHECK"), std::string::npos) << result.out;
    EXPECT_FALSE(file_exists(path("run.db")));
  }

  // Counts of classes in package `held` that no expectation speaks of: there must be none.
  void expect_nothing_else() {
    std::set<std::string> known;
    for (const Expectation& e : expectations_) {
      known.insert(e.key());
      Expectation load = e;
      load.op = "load";
      if (loads_for_collector(e)) known.insert(load.key());
    }
    for (const auto& [key, count] : counts_.all) {
      if (key.rfind("held.", 0) != 0 || key.find("[] ") != std::string::npos) continue;
      EXPECT_TRUE(known.count(key)) << "recorded but never done: " << key << " " << count;
    }
  }

  void expect_exact(const Expectation& e) {
    if (loads_for_collector(e) && e.op == "load") {
      EXPECT_GE(counts_.of(e), e.count) << e.key();
    } else {
      EXPECT_EQ(counts_.of(e), e.count) << e.key();
    }
  }

  void expect_indexes(const Expectation& e) {
    std::map<int64_t, int64_t> wanted;
    for (int64_t i = 0; i < e.elements; i++) wanted[i] = e.count / e.elements;
    EXPECT_EQ(indexes_[e.key()], wanted) << "rows by index: " << e.key();
  }

  // The single rows and the counts are two views of the same accesses.
  void expect_rows_agree() {
    const std::string rows =
        "SELECT thread_id, site_id, class_id, field_id, part, op, count(*), sum(size) FROM access GROUP BY 1, 2, 3, 4, "
        "5, 6";
    const std::string sums =
        "SELECT thread_id, site_id, class_id, field_id, part, op, sum(count), sum(bytes) FROM access_count "
        "GROUP BY 1, 2, 3, 4, 5, 6";
    EXPECT_EQ(db_->integer("SELECT count(*) FROM (" + rows + " EXCEPT " + sums + ")"), 0);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM (" + sums + " EXCEPT " + rows + ")"), 0);
    EXPECT_GT(db_->integer("SELECT count(*) FROM access"), 0);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM access WHERE address BETWEEN 0 AND 65535"), 0);
  }

  void expect_complete() {
    db_->expect_whole();
    EXPECT_EQ(db_->text("SELECT status FROM run"), "complete");
    EXPECT_EQ(db_->diagnostic("dropped"), 0);
    EXPECT_GT(db_->diagnostic("traps"), 0);
    if (GetParam().churn) {
      EXPECT_GE(db_->integer("SELECT count(*) FROM gc"), 100);
    }
  }

  std::vector<Expectation> expectations_;
  std::optional<Database> db_;
  Counts counts_;
  Indexes indexes_;
};

void ExactCounts::check() {
  record();
  if (HasFailure() || IsSkipped() || !GetParam().refusal().empty()) return;
  expect_complete();
  expect_nothing_else();
  expect_rows_agree();
  const bool interpreted = GetParam().execution == Execution::kInterpreted;
  int64_t plain_loads_done = 0, plain_loads_seen = 0, field_stores_seen = 0;
  for (const Expectation& e : expectations_) {
    if (!selected(e)) continue;
    if (interpreted) {
      expect_exact(e);
      if (e.element()) expect_indexes(e);
    } else if (e.part == "length") {
      continue;  // a compiler keeps it in a register
    } else if (e.kind == "volatile") {
      expect_exact(e);
    } else if (e.op == "store") {
      // A compiler may leave a plain store out, never add one.
      EXPECT_LE(counts_.of(e), e.count) << e.key();
      if (!e.element()) field_stores_seen += counts_.of(e);
    } else {
      plain_loads_done += e.count;
      plain_loads_seen += counts_.of(e);
    }
  }
  if (interpreted) return;
  std::cout << "plain loads recorded: " << plain_loads_seen << " of " << plain_loads_done << " bytecodes\n";
  EXPECT_GT(field_stores_seen, 0) << "the last store of every loop reaches memory";
  if (GetParam().execution == Execution::kDefault) return;
  // The mode did what its name says: most volatile accesses came from compiled code.
  int64_t all = 0, compiled = 0;
  for (const Expectation& e : expectations_) {
    if (e.kind != "volatile") continue;
    all += counts_.of(e);
    auto found = counts_.compiled.find(e.key());
    compiled += found == counts_.compiled.end() ? 0 : found->second;
  }
  EXPECT_GT(compiled * 2, all) << "compiled " << compiled << " of " << all;
}

TEST_P(ExactCounts, EqualWhatTheProgramDid) { check(); }

INSTANTIATE_TEST_SUITE_P(Modes, ExactCounts, ::testing::ValuesIn(exact_count_modes()),
                         [](const auto& param) { return param.param.name(); });

class Matrix : public ExactCounts {};

TEST_P(Matrix, EqualWhatTheProgramDid) {
  std::cout << "CLASSACCESS_MATRIX_SEED=" << matrix_seed() << " chooses the cells of this run\n";
  check();
}

INSTANTIATE_TEST_SUITE_P(Cells, Matrix, ::testing::ValuesIn(matrix_cells()),
                         [](const auto& param) { return param.param.name(); });

// The choice itself: small, the same for the same seed, and no pair of values that a traced cell can have
// is left to a refused one.
TEST(MatrixChoice, CoversEveryPair) {
  std::vector<Mode> all = all_matrix_cells();
  auto pairs = [](const std::vector<Mode>& cells) {
    std::set<std::string> seen;
    for (const Mode& mode : cells) {
      if (!mode.refusal().empty()) continue;
      std::string jdk = mode.jdk.home + (mode.compact ? "c" : "");
      std::string collector = std::to_string(static_cast<int>(mode.collector));
      std::string execution = std::to_string(static_cast<int>(mode.execution));
      std::string oops = mode.compressed_oops ? "32" : "64", gate = mode.mprotect ? "m" : "p";
      for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{{jdk, collector},
                                                                                 {jdk, execution},
                                                                                 {jdk, oops},
                                                                                 {jdk, gate},
                                                                                 {collector, execution},
                                                                                 {collector, oops},
                                                                                 {collector, gate},
                                                                                 {execution, oops},
                                                                                 {execution, gate},
                                                                                 {oops, gate}}) {
        seen.insert(a + " " + b);
      }
    }
    return seen;
  };
  for (uint64_t seed : {1u, 2u, 77u}) {
    std::vector<Mode> cells = pairwise(all, seed, 60);
    EXPECT_LE(cells.size(), 60u);
    EXPECT_EQ(pairs(cells), pairs(all)) << seed;
    std::set<std::string> names, again;
    for (const Mode& mode : cells) names.insert(mode.name());
    for (const Mode& mode : pairwise(all, seed, 60)) again.insert(mode.name());
    EXPECT_EQ(names, again) << seed;
    EXPECT_EQ(names.size(), cells.size()) << seed;
    std::cout << "seed " << seed << ": " << cells.size() << " of " << all.size() << " cells\n";
  }
}

}  // namespace
}  // namespace classaccess
