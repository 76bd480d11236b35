#include "tests/jvm/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

std::string element_key(const CoverageLine& line) { return line.path + " " + line.class_name + " " + line.op; }
std::string field_key(const CoverageLine& line) {
  return line.path + " " + line.class_name + " " + line.what + " " + line.part + " " + line.op;
}

int element_size(const std::string& array) {
  if (array == "boolean[]" || array == "byte[]") return 1;
  if (array == "char[]" || array == "short[]") return 2;
  if (array == "long[]" || array == "double[]") return 8;
  return 4;  // int, float, compressed references
}

bool set_key(CoverageLine& line, const std::string& key, const std::string& value) {
  if (key == "path")
    line.path = value;
  else if (key == "class")
    line.class_name = value;
  else if (key == "what")
    line.what = value;
  else if (key == "part")
    line.part = value;
  else if (key == "op")
    line.op = value;
  else if (key == "reason")
    line.reason = value;
  else if (key == "least")
    line.least = std::strtoll(value.c_str(), nullptr, 10);
  else if (key == "most")
    line.most = std::strtoll(value.c_str(), nullptr, 10);
  else
    return false;
  return true;
}

// Least and most accesses that an index of the line's range had.
std::pair<int64_t, int64_t> extremes(const CoverageLine& line, const RecordedPaths& recorded) {
  auto found = recorded.elements.find(element_key(line));
  if (found == recorded.elements.end()) return {0, 0};
  const std::vector<int64_t>& counts = found->second;
  int64_t least = INT64_MAX, most = 0;
  for (int i = line.first; i < line.last; i++) {
    int64_t count = static_cast<size_t>(i) < counts.size() ? counts[static_cast<size_t>(i)] : 0;
    least = std::min(least, count);
    most = std::max(most, count);
  }
  return {least, most};
}

struct TableLine {
  int64_t lines = 0, least = 0, most = 0, recorded = 0, wrong = 0;
  std::set<std::string> reasons;
};

void print_table(const std::map<std::string, TableLine>& table, const RecordedPaths& recorded, std::ostream& out) {
  char text[256];
  std::snprintf(text, sizeof text, "%-52s %-6s %5s %10s %10s %10s %9s  %s\n", "path", "op", "lines", "expected",
                "at most", "recorded", "compiled", "verdict");
  out << text;
  for (const auto& [name, line] : table) {
    size_t space = name.rfind(' ');
    auto compiled = recorded.compiled.find(name);
    std::string most = line.least == line.most ? "" : std::to_string(line.most);
    std::string verdict = line.wrong != 0 ? "WRONG" : line.reasons.empty() ? "equal" : "";
    for (const std::string& reason : line.reasons) verdict += (verdict.empty() ? "bound: " : ", ") + reason;
    std::snprintf(text, sizeof text, "%-52s %-6s %5ld %10ld %10s %10ld %9ld  %s\n", name.substr(0, space).c_str(),
                  name.substr(space + 1).c_str(), line.lines, line.least, most.c_str(), line.recorded,
                  compiled == recorded.compiled.end() ? 0L : compiled->second, verdict.c_str());
    out << text;
  }
}

}  // namespace

std::string reason_text(const std::string& reason) {
  static const std::map<std::string, std::string> kReasons = {
      {"loads-first", "the JDK's Java code of a read-modify-write loads, then swaps; compilers replace it by one"},
      {"last-start", "a needle of two characters cannot start at the last one"},
      {"overlap", "the last vector or word of a copy may touch again what the one before it has touched"},
      {"rounded-up", "a copy of whole words runs into the padding behind the last element"},
      {"shared-array", "C2 lets the result share the only argument's array"},
      {"sort", "how often sorting looks at an element depends on the algorithm"},
      {"vm-looks", "the VM reads the mark word more than once"},
      {"vm-passes", "the VM goes through a string more than once"},
      {"whole-int", "interpreted, a byte or short is swapped as part of its int"},
  };
  auto found = kReasons.find(reason);
  EXPECT_TRUE(found != kReasons.end()) << "a bound without a written reason: " << reason;
  return found == kReasons.end() ? "" : found->second;
}

std::vector<CoverageLine> parse_coverage(const std::string& out) {
  std::vector<CoverageLine> result;
  for (const std::string& text : lines_with(out, "EXPECT ")) {
    CoverageLine line;
    std::istringstream words(text);
    std::string word;
    bool good = true;
    while (words >> word) {
      size_t equals = word.find('=');
      good = equals != std::string::npos && set_key(line, word.substr(0, equals), word.substr(equals + 1)) && good;
    }
    if (line.element()) good = std::sscanf(line.what.c_str(), "%d..%d", &line.first, &line.last) == 2 && good;
    if (!good || line.path.empty() || line.class_name.empty() || line.op.empty() || line.most < line.least) {
      ADD_FAILURE() << "not understood: EXPECT " << text;
    }
    result.push_back(line);
  }
  return result;
}

int64_t RecordedPaths::count(const CoverageLine& line) const {
  if (!line.element()) {
    auto found = fields.find(field_key(line));
    return found == fields.end() ? 0 : found->second;
  }
  auto found = elements.find(element_key(line));
  int64_t sum = 0;
  for (int i = line.first; found != elements.end() && i < line.last; i++) {
    if (static_cast<size_t>(i) < found->second.size()) sum += found->second[static_cast<size_t>(i)];
  }
  return sum;
}

int64_t RecordedPaths::total() const {
  int64_t sum = 0;
  for (const auto& [key, count] : fields) sum += count;
  for (const auto& [key, counts] : elements) {
    for (size_t i = kFirstIndex; i < counts.size(); i++) sum += counts[i];
  }
  return sum;
}

RecordedPaths read_paths(Database& db) {
  RecordedPaths recorded;
  for (const Row& row :
       db.rows("SELECT t.name, c.name, coalesce(f.name, '-'), a.part, a.op, s.kind, sum(a.count) FROM access_count a "
               "JOIN class c ON c.id = a.class_id JOIN thread t ON t.id = a.thread_id JOIN site s ON s.id = a.site_id "
               "LEFT JOIN field f ON f.id = a.field_id WHERE t.name LIKE '%/%' AND c.name LIKE 'covered.%' AND "
               "a.part IN ('field', 'static', 'mark') AND s.kind != 'gc' GROUP BY 1, 2, 3, 4, 5, 6")) {
    int64_t count = std::strtoll(row[6].c_str(), nullptr, 10);
    recorded.fields[row[0] + " " + row[1] + " " + row[2] + " " + row[3] + " " + row[4]] += count;
    if (row[5] == "c1" || row[5] == "c2") recorded.compiled[row[0] + " " + row[4]] += count;
  }
  for (const Row& row :
       db.rows("SELECT t.name, c.name, a.op, a.element, a.size, s.kind, count(*) FROM access a "
               "JOIN class c ON c.id = a.class_id JOIN thread t ON t.id = a.thread_id JOIN site s ON s.id = a.site_id "
               "WHERE t.name LIKE '%/%' AND a.part = 'element' AND s.kind != 'gc' AND a.element + a.size > " +
               std::to_string(RecordedPaths::kFirstIndex) + " GROUP BY 1, 2, 3, 4, 5, 6")) {
    int64_t count = std::strtoll(row[6].c_str(), nullptr, 10);
    int64_t first = std::strtoll(row[3].c_str(), nullptr, 10);
    int64_t size = std::strtoll(row[4].c_str(), nullptr, 10);
    int64_t last = first + std::max<int64_t>(1, size / element_size(row[1]));
    if (last <= RecordedPaths::kFirstIndex) continue;
    std::vector<int64_t>& counts = recorded.elements[row[0] + " " + row[1] + " " + row[2]];
    if (counts.size() < static_cast<size_t>(last)) counts.resize(static_cast<size_t>(last));
    for (int64_t i = first; i < last; i++) counts[static_cast<size_t>(i)] += count;
    if (row[5] == "c1" || row[5] == "c2") recorded.compiled[row[0] + " " + row[2]] += count * (last - first);
  }
  recorded.unresolved = db.integer(
      "SELECT coalesce(sum(count), 0) FROM access_count a JOIN thread t ON t.id = a.thread_id "
      "WHERE t.name LIKE '%/%' AND a.class_id IS NULL");
  return recorded;
}

void expect_coverage(const std::vector<CoverageLine>& lines, const RecordedPaths& recorded, std::ostream& out) {
  std::map<std::string, TableLine> table;
  std::set<std::string> known;
  std::map<std::string, std::set<int>> known_indexes;
  std::set<std::string> element_paths, reasons;
  for (const CoverageLine& line : lines) {
    if (line.element()) element_paths.insert(line.path);
    TableLine& sum = table[line.path + " " + line.op];
    int64_t count = recorded.count(line);
    bool good = count >= line.least && count <= line.most;
    int64_t indexes = 1;
    if (line.element()) {
      indexes = line.last - line.first;
      auto [least, most] = extremes(line, recorded);
      good = least >= line.least && most <= line.most;
      EXPECT_TRUE(good) << line.path << " " << line.class_name << " " << line.what << " " << line.op << ": from "
                        << line.least << " to " << line.most << " an index, recorded " << least << " to " << most;
      for (int i = line.first; i < line.last; i++) known_indexes[element_key(line)].insert(i);
    } else {
      EXPECT_TRUE(good) << field_key(line) << ": from " << line.least << " to " << line.most << ", recorded " << count;
      known.insert(field_key(line));
    }
    sum.lines++;
    sum.least += line.least * indexes;
    sum.most += line.most * indexes;
    sum.recorded += count;
    sum.wrong += good ? 0 : 1;
    if (!line.exact()) {
      sum.reasons.insert(line.reason);
      reasons.insert(line.reason);
    }
  }
  for (const auto& [key, count] : recorded.fields) {
    if (key.find(" mark ") != std::string::npos && known.count(key) == 0) continue;
    EXPECT_TRUE(known.count(key)) << "recorded but never done: " << key << " " << count;
  }
  for (const auto& [key, counts] : recorded.elements) {
    // Paths of fields may use the JDK's own large arrays.
    if (element_paths.count(key.substr(0, key.find(' '))) == 0) continue;
    for (size_t i = RecordedPaths::kFirstIndex; i < counts.size(); i++) {
      if (counts[i] == 0 || known_indexes[key].count(static_cast<int>(i)) != 0) continue;
      ADD_FAILURE() << "recorded but never done: " << key << " index " << i << ", " << counts[i] << " times";
      break;
    }
  }
  print_table(table, recorded, out);
  for (const std::string& reason : reasons) out << "bound " << reason << ": " << reason_text(reason) << "\n";
  EXPECT_EQ(recorded.unresolved, 0) << "accesses of the paths' threads without a class";
}

}  // namespace classaccess
