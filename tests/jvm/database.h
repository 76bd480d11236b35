// Reads a recording for the tests: plain queries, every SQLite error is a test failure.
//
// Uses only the tables and views that users have. Context: test process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct sqlite3;

namespace classaccess {

using Row = std::vector<std::string>;  // NULL is an empty string

class Database {
 public:
  // read_only: mode=ro, as a reader beside a running JVM. Otherwise a recording left by kill -9 is
  // recovered from its -wal.
  Database(const std::string& path, bool read_only);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool is_open() const { return db_ != nullptr; }
  const std::string& error() const { return error_; }

  std::vector<Row> rows(const std::string& sql);
  // First column of the first row; 0 or empty when there is none.
  int64_t integer(const std::string& sql);
  std::string text(const std::string& sql);
  // Value of a `diagnostic` row, 0 if it is not there.
  int64_t diagnostic(const std::string& name);
  // The sites of accesses whose object was not known, for a test's message.
  std::string unresolved_sites();

  // Fails the test unless: integrity_check is ok, every access, access_count, site and field row joins to
  // names, and no resolved row lacks its class.
  void expect_whole();

 private:
  sqlite3* db_ = nullptr;
  std::string path_, error_;
};

bool file_exists(const std::string& path);

}  // namespace classaccess
