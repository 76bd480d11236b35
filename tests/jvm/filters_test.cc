// What the options leave out and keep: classes, threads, events, values (interface.md section 1).
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/expectations.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class Filters : public CountsTest {
 protected:
  // Records two interpreted workers, one round each.
  void record(const std::string& options) {
    expectations_ = run_counts(JavaRun{newest_jdk(),
                                       {"-Xint", "-XX:+UseSerialGC"},
                                       options + ",out=" + path("run.db"),
                                       {"counts.ExactCounts", "2", "1", "0"},
                                       "",
                                       60});
    if (HasFailure()) return;
    db_.emplace(path("run.db"), true);
    ASSERT_TRUE(db_->is_open()) << db_->error();
    db_->expect_whole();
    counts_ = read_counts(*db_);
  }

  // Counts of expectations that `selected` takes are exact, and there are some; others were not recorded.
  template <typename Selected>
  void expect_only(Selected selected) {
    int64_t checked = 0;
    for (const Expectation& e : expectations_) {
      if (e.class_name.rfind("held.", 0) != 0) continue;
      EXPECT_EQ(counts_.of(e), selected(e) ? e.count : 0) << e.key();
      if (selected(e)) checked++;
    }
    EXPECT_GT(checked, 0);
  }

  std::string classes_recorded() {
    return db_->text(
        "SELECT group_concat(name) FROM (SELECT DISTINCT c.name FROM access_count a "
        "JOIN class c ON c.id = a.class_id WHERE a.part IN ('field', 'static', 'element') ORDER BY 1)");
  }

  std::vector<Expectation> expectations_;
  std::optional<Database> db_;
  Counts counts_;
};

TEST_F(Filters, OneThread) {
  record("classes=held.**,held.Cell[],threads=worker-1");
  if (HasFailure()) return;
  expect_only([](const Expectation& e) { return e.thread == "worker-1"; });
  EXPECT_EQ(db_->text("SELECT group_concat(DISTINCT t.name) FROM access_count a JOIN thread t ON t.id = a.thread_id"),
            "worker-1");
}

TEST_F(Filters, ThreadGlob) {
  record("classes=held.**,held.Cell[],threads=*er-0,nobody");
  if (HasFailure()) return;
  expect_only([](const Expectation& e) { return e.thread == "worker-0"; });
}

TEST_F(Filters, ExactName) {
  record("classes=held.Base");
  if (HasFailure()) return;
  EXPECT_EQ(classes_recorded(), "held.Base") << "an object of a subclass does not match";
  expect_only([](const Expectation& e) { return e.class_name == "held.Base"; });
}

TEST_F(Filters, SimpleNameWithSubclasses) {
  record("classes=Base+");
  if (HasFailure()) return;
  EXPECT_EQ(classes_recorded(), "held.Base,held.Derived");
  expect_only([](const Expectation& e) { return e.class_name == "held.Base" || e.class_name == "held.Derived"; });
}

TEST_F(Filters, PackageWithoutOne) {
  record("classes=held.*,!held.Plain,!Made");
  if (HasFailure()) return;
  // The star stands for Cell[] as well.
  expect_only([](const Expectation& e) { return e.class_name != "held.Plain" && e.class_name != "held.Made"; });
}

TEST_F(Filters, ArrayNamesMeanTheSame) {
  record("classes=[D,Cell[],[[I");
  if (HasFailure()) return;
  EXPECT_EQ(classes_recorded(), "double[],held.Cell[],int[][]");
  expect_only([](const Expectation& e) { return e.class_name == "held.Cell[]"; });
}

TEST_F(Filters, EventsLimitRowsNotCounts) {
  record("classes=held.**,held.Cell[],events=10");
  if (HasFailure()) return;
  expect_only([](const Expectation&) { return true; });
  EXPECT_EQ(db_->integer("SELECT count(*) FROM access"), 10);
  EXPECT_EQ(db_->integer("SELECT max(seq) - min(seq) FROM access"), 9) << "the first ones";
}

TEST_F(Filters, EventsOff) {
  record("classes=held.**,held.Cell[],events=off");
  if (HasFailure()) return;
  expect_only([](const Expectation&) { return true; });
  EXPECT_EQ(db_->integer("SELECT count(*) FROM access"), 0);
}

// counts.*.storeX stores 0, 1, 2 and so on.
TEST_F(Filters, ValuesAreWhatWasStored) {
  record("classes=held.**,events=all,values=on");
  if (HasFailure()) return;
  for (const char* field : {"Plain.b", "Plain.c", "Plain.s", "Plain.i", "Plain.j", "Volatile.i", "Statics.j"}) {
    for (const Expectation& e : expectations_) {
      if (e.class_name + "." + e.field != std::string("held.") + field || e.op != "store") continue;
      std::vector<std::string> wanted, seen;
      for (int64_t i = 0; i < e.count; i++) wanted.push_back(std::to_string(i));
      for (const Row& row : db_->rows("SELECT a.value FROM access a JOIN class c ON c.id = a.class_id "
                                      "JOIN field f ON f.id = a.field_id JOIN thread t ON t.id = a.thread_id "
                                      "WHERE c.name = '" +
                                      e.class_name + "' AND f.name = '" + e.field +
                                      "' AND a.op = 'store' AND t.name = '" + e.thread + "' ORDER BY a.seq")) {
        seen.push_back(row[0]);
      }
      EXPECT_EQ(seen, wanted) << e.key();
    }
  }
}

TEST_F(Filters, NoValuesUnlessAsked) {
  record("classes=held.Plain,events=all");
  if (HasFailure()) return;
  EXPECT_EQ(db_->integer("SELECT count(*) FROM access WHERE value IS NOT NULL"), 0);
}

}  // namespace
}  // namespace classaccess
