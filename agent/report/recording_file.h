// A recording's database, opened for reading beside whoever writes it.
//
// One read transaction from open() to the end: all tables of a report are of the same
// moment, also while the JVM runs. (The writer's checkpoints leave what we read in the
// -wal file meanwhile; it never waits for us.) Temporary tables live in memory.
// Errors are sticky: after the first one every query gives no rows and error() tells.
// Context: the classaccess command, one thread.
#pragma once

#include <functional>
#include <string>

#include "agent/report/cell.h"

struct sqlite3;

namespace classaccess {

class RecordingFile {
 public:
  RecordingFile() = default;
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  // Empty string, or why the file cannot be reported on: not there, no recording, one of
  // another version, locked, damaged.
  std::string open(const std::string& path);

  // Rows of one statement; values are bound to ?1, ?2 ...
  void each(const std::string& sql, const CellRow& values, const std::function<void(const CellRow&)>& row);
  std::vector<CellRow> rows(const std::string& sql, const CellRow& values = {});
  // First column of the first row; NULL if there is none.
  Cell value(const std::string& sql, const CellRow& values = {});
  void run(const std::string& sql, const CellRow& values = {}) { each(sql, values, {}); }
  // The names of a statement's columns.
  std::vector<std::string> columns(const std::string& sql);
  // A table or view of the recording.
  bool has(const std::string& table);
  // A `diagnostic` row, 0 if there is none.
  int64_t diagnostic(const std::string& name);

  const std::string& error() const { return error_; }
  const std::string& path() const { return path_; }
  // Of the file and its -wal.
  int64_t bytes() const;

 private:
  void fail(int code);

  sqlite3* handle_ = nullptr;
  std::string path_, error_;
};

}  // namespace classaccess
