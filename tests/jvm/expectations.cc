#include "tests/jvm/expectations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

namespace classaccess {
namespace {

std::string make_key(const std::string& class_name, const std::string& declares, const std::string& field,
                     const std::string& part, const std::string& op, const std::string& thread,
                     const std::string& method) {
  bool by_method = part == "element" || part == "length";
  return class_name + " " + (by_method ? method : declares + "." + field) + " " + part + " " + op + " " + thread;
}

}  // namespace

std::string Expectation::key() const { return make_key(class_name, declares, field, part, op, thread, method); }

std::vector<Expectation> parse_expectations(const std::string& out) {
  std::vector<Expectation> result;
  for (const std::string& line : lines_with(out, "EXPECT ")) {
    Expectation e;
    std::istringstream words(line);
    std::string word;
    while (words >> word) {
      size_t equals = word.find('=');
      std::string key = word.substr(0, equals);
      std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (key == "class")
        e.class_name = value;
      else if (key == "declares")
        e.declares = value;
      else if (key == "field")
        e.field = value;
      else if (key == "part")
        e.part = value;
      else if (key == "kind")
        e.kind = value;
      else if (key == "op")
        e.op = value;
      else if (key == "thread")
        e.thread = value;
      else if (key == "method")
        e.method = value;
      else if (key == "count")
        e.count = std::strtoll(value.c_str(), nullptr, 10);
      else if (key == "elements")
        e.elements = std::strtoll(value.c_str(), nullptr, 10);
      else
        ADD_FAILURE() << "unknown key in: EXPECT " << line;
    }
    if (e.class_name.empty() || e.part.empty() || e.op.empty() || e.thread.empty() || e.count <= 0) {
      ADD_FAILURE() << "not understood: EXPECT " << line;
    }
    result.push_back(e);
  }
  return result;
}

int64_t Counts::of(const Expectation& expectation) const {
  auto found = all.find(expectation.key());
  return found == all.end() ? 0 : found->second;
}

Counts read_counts(Database& db) {
  Counts counts;
  for (const Row& row : db.rows(
           "SELECT c.name, coalesce(d.name, ''), coalesce(f.name, ''), a.part, a.op, t.name, coalesce(s.method, ''), "
           "s.kind, sum(a.count) FROM access_count a JOIN class c ON c.id = a.class_id "
           "JOIN thread t ON t.id = a.thread_id JOIN site s ON s.id = a.site_id "
           "LEFT JOIN field f ON f.id = a.field_id LEFT JOIN class d ON d.id = f.class_id "
           "WHERE a.part IN ('field', 'static', 'element', 'length') AND s.kind != 'gc' GROUP BY 1, 2, 3, 4, 5, 6, 7, "
           "8")) {
    std::string key = make_key(row[0], row[1], row[2], row[3], row[4], row[5], row[6]);
    int64_t count = std::strtoll(row[8].c_str(), nullptr, 10);
    counts.all[key] += count;
    if (row[7] == "c1" || row[7] == "c2") counts.compiled[key] += count;
  }
  return counts;
}

std::vector<Expectation> CountsTest::run_counts(const JavaRun& traced) {
  ProcessResult told = run_untraced(traced);
  JavaRun silent = traced;
  silent.program.push_back("silent");
  ProcessResult result = run(silent);
  expect_done(result);
  if (HasFailure()) return {};
  EXPECT_EQ(check_value(result.out, "sum"), check_value(told.out, "sum")) << "the program computed something else";
  EXPECT_EQ(result.err, told.err);
  return parse_expectations(told.out);
}

Indexes read_indexes(Database& db) {
  Indexes result;
  for (const Row& row : db.rows("SELECT c.name, s.method, a.op, t.name, a.element, count(*) FROM access a "
                                "JOIN site s ON s.id = a.site_id JOIN class c ON c.id = a.class_id "
                                "JOIN thread t ON t.id = a.thread_id "
                                "WHERE a.part = 'element' AND s.method LIKE 'counts.%' GROUP BY 1, 2, 3, 4, 5")) {
    std::string key = make_key(row[0], "", "", "element", row[2], row[3], row[1]);
    int64_t index = row[4].empty() ? -1 : std::strtoll(row[4].c_str(), nullptr, 10);
    result[key][index] = std::strtoll(row[5].c_str(), nullptr, 10);
  }
  return result;
}

}  // namespace classaccess
