// What a harness program says it did, and what a recording says of the same.
//
// A harness program prints `EXPECT key=value ...` lines (java-harness/counts/Expect.java). The keys
// that name a count are put together into one string here, and the recording's counts are summed
// under the same strings. Context: test process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {

struct Expectation {
  std::string class_name, declares, field, part, kind, op, thread, method;
  int64_t count = 0;
  int64_t elements = 0;  // arrays: every index from 0 to this is touched count/elements times

  bool element() const { return part == "element"; }
  // Key into Counts.
  std::string key() const;
};

// Fails the test on a line that is not understood.
std::vector<Expectation> parse_expectations(const std::string& out);

// Counts by Expectation::key(). Fields are summed over sites, elements and lengths kept by method.
// Accesses of the collector on a Java thread (site kind gc) are not the program's and left out.
struct Counts {
  std::map<std::string, int64_t> all;
  std::map<std::string, int64_t> compiled;  // of `all`: at sites of kind c1 or c2

  int64_t of(const Expectation& expectation) const;
};
Counts read_counts(Database& db);

// Single rows of elements: by Expectation::key(), index -> rows; -1 is a row without an index.
using Indexes = std::map<std::string, std::map<int64_t, int64_t>>;
Indexes read_indexes(Database& db);

// A test that runs counts.ExactCounts.
class CountsTest : public JavaTest {
 protected:
  // Runs it with and without the agent; both must do the same. Returns what the one without says of
  // what it does; the traced one is silent, since printing under the agent would be most of its work.
  std::vector<Expectation> run_counts(const JavaRun& traced);
};

}  // namespace classaccess
