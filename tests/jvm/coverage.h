// What cover.Coverage says each path must have done (java-harness/cover/Expect.java), what a recording says each
// thread did, and the table of both. Context: test process.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "tests/jvm/database.h"

namespace classaccess {

// One line: between least and most accesses of a field, or of each index from first to before last.
struct CoverageLine {
  std::string path, class_name, what, part, op, reason;
  int64_t least = 0, most = 0;
  int first = 0, last = 0;

  bool element() const { return part == "element"; }
  bool exact() const { return least == most; }
};

// Fails the test on a line that is not understood.
std::vector<CoverageLine> parse_coverage(const std::string& out);

// A word of `reason` as a sentence; fails the test on one without.
std::string reason_text(const std::string& reason);

// What the threads of the paths did. Collector's work on them (site kind gc) is left out.
struct RecordedPaths {
  // Array indexes below this belong to the JDK's own arrays, not to measured ones.
  static constexpr int kFirstIndex = 4096;

  std::map<std::string, int64_t> fields;                 // "path class what part op"
  std::map<std::string, std::vector<int64_t>> elements;  // "path class op": accesses of each index
  std::map<std::string, int64_t> compiled;               // "path op": of all the above, from c1 or c2 code
  int64_t unresolved = 0;                                // rows of these threads without a class

  int64_t count(const CoverageLine& line) const;
  // Of fields and of measured elements.
  int64_t total() const;
};
RecordedPaths read_paths(Database& db);

// Checks every line, and that nothing else was recorded; prints the table with a line for each path and operation.
void expect_coverage(const std::vector<CoverageLine>& lines, const RecordedPaths& recorded, std::ostream& out);

}  // namespace classaccess
