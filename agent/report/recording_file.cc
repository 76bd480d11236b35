#include "agent/report/recording_file.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include <filesystem>

#include "agent/store/schema.h"

namespace classaccess {
namespace {

Cell column(sqlite3_stmt* statement, int i) {
  switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(statement, i);
    case SQLITE_FLOAT: return sqlite3_column_double(statement, i);
    case SQLITE_NULL: return {};
    default: {
      auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      return std::string(text != nullptr ? text : "", static_cast<size_t>(sqlite3_column_bytes(statement, i)));
    }
  }
}

void bind(sqlite3_stmt* statement, int index, const Cell& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    sqlite3_bind_int64(statement, index, *number);
  } else if (const double* real = std::get_if<double>(&value)) {
    sqlite3_bind_double(statement, index, *real);
  } else if (const std::string* text = std::get_if<std::string>(&value)) {
    sqlite3_bind_text(statement, index, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
  } else {
    sqlite3_bind_null(statement, index);
  }
}

}  // namespace

RecordingFile::~RecordingFile() { sqlite3_close_v2(handle_); }

std::string RecordingFile::open(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "cannot read '" + path + "': " + strerror(errno);
  if (!S_ISREG(info.st_mode)) return "cannot read '" + path + "': not a regular file";
  // Absolute: never taken for a URI or a name with a meaning.
  std::error_code ec;
  path_ = std::filesystem::absolute(path, ec).string();
  int code = sqlite3_open_v2(path_.c_str(), &handle_, SQLITE_OPEN_READONLY, nullptr);
  if (code != SQLITE_OK) return "cannot read '" + path + "': " + sqlite3_errstr(code);
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, 2000);
  // What does not fit into the caches goes to files in a folder for temporary files.
  run("PRAGMA temp_store=FILE");
  run("BEGIN");
  int64_t application = integer_of(value("PRAGMA application_id"));
  int64_t version = integer_of(value("PRAGMA user_version"));
  if (!error_.empty()) return error_;
  if (application != kApplicationId) return "'" + path + "' is no recording of classaccess";
  if (version != kUserVersion) {
    return "'" + path + "' has version " + std::to_string(version) + ", this command reads version " +
           std::to_string(kUserVersion) + ": use the classaccess that has recorded it";
  }
  return error_;
}

void RecordingFile::fail(int code) {
  if (!error_.empty()) return;
  int primary = code & 0xff;
  if (primary == SQLITE_NOTADB) {
    error_ = "'" + path_ + "' is no SQLite database";
    return;
  }
  error_ = "cannot read '" + path_ + "': " + sqlite3_errmsg(handle_);
  struct stat info;
  if ((primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) && stat((path_ + "-wal").c_str(), &info) == 0) {
    error_ += ": it has a -wal file, which can only be read where a -shm file may be made: copy both to such a folder";
  } else if (primary == SQLITE_BUSY || primary == SQLITE_PROTOCOL) {
    error_ += ": try again when the process that has locked it lets go";
  } else if (primary == SQLITE_FULL || code == SQLITE_IOERR_GETTEMPPATH) {
    // We write temporary files only.
    error_ += ": there is no room for temporary files: set SQLITE_TMPDIR to a folder that has some";
  } else if (primary == SQLITE_CORRUPT) {
    error_ += ": the file was cut or overwritten; `sqlite3 FILE .recover` saves what can be read";
  }
}

void RecordingFile::each(const std::string& sql, const CellRow& values,
                         const std::function<void(const CellRow&)>& row) {
  if (!error_.empty()) return;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr);
  if (code == SQLITE_OK) {
    for (size_t i = 0; i < values.size(); ++i) bind(statement, static_cast<int>(i) + 1, values[i]);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      if (!row) continue;
      CellRow cells;
      for (int i = 0; i < sqlite3_column_count(statement); ++i) cells.push_back(column(statement, i));
      row(cells);
    }
  }
  if (code != SQLITE_DONE && code != SQLITE_OK) fail(code);
  sqlite3_finalize(statement);
}

std::vector<CellRow> RecordingFile::rows(const std::string& sql, const CellRow& values) {
  std::vector<CellRow> all;
  each(sql, values, [&](const CellRow& row) { all.push_back(row); });
  return all;
}

Cell RecordingFile::value(const std::string& sql, const CellRow& values) {
  std::vector<CellRow> all = rows(sql, values);
  return all.empty() || all[0].empty() ? Cell() : all[0][0];
}

std::vector<std::string> RecordingFile::columns(const std::string& sql) {
  std::vector<std::string> names;
  if (!error_.empty()) return names;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr);
  if (code != SQLITE_OK) fail(code);
  for (int i = 0; code == SQLITE_OK && i < sqlite3_column_count(statement); ++i) {
    names.push_back(sqlite3_column_name(statement, i));
  }
  sqlite3_finalize(statement);
  return names;
}

bool RecordingFile::has(const std::string& table) {
  return !is_null(value("SELECT 1 FROM main.sqlite_master WHERE name = ?1", {table}));
}

int64_t RecordingFile::diagnostic(const std::string& name) {
  return integer_of(value("SELECT value FROM diagnostic WHERE name = ?1", {name}));
}

int64_t RecordingFile::bytes() const {
  int64_t sum = 0;
  for (const char* suffix : {"", "-wal"}) {
    struct stat info;
    if (stat((path_ + suffix).c_str(), &info) == 0) sum += info.st_size;
  }
  return sum;
}

}  // namespace classaccess
