#include "query.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

namespace classaccess {
namespace {
std::vector<std::string>& directories() {
  static std::vector<std::string> made;
  return made;
}
}  // namespace

std::vector<std::string> query(const std::string& path, const std::string& sql) {
  std::vector<std::string> rows;
  sqlite3* db = nullptr;
  std::string uri = "file:" + path + "?mode=ro";
  int code = sqlite3_open_v2(uri.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  sqlite3_busy_timeout(db, 5000);
  sqlite3_stmt* statement = nullptr;
  if (code == SQLITE_OK) code = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr);
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW) break;
    std::string row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      if (i > 0) row += '|';
      const unsigned char* text = sqlite3_column_text(statement, i);
      if (text != nullptr) row += reinterpret_cast<const char*>(text);
    }
    rows.push_back(row);
  }
  if (code != SQLITE_DONE) rows = {"error: " + std::string(sqlite3_errmsg(db))};
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return rows;
}

std::string query_one(const std::string& path, const std::string& sql) {
  std::vector<std::string> rows = query(path, sql);
  return rows.empty() ? "" : rows[0];
}

int64_t query_number(const std::string& path, const std::string& sql) {
  std::string text = query_one(path, sql);
  char* end = nullptr;
  int64_t value = strtoll(text.c_str(), &end, 10);
  return end != text.c_str() && *end == '\0' ? value : INT64_MIN;
}

bool exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

std::string make_directory() {
  const char* base = getenv("TMPDIR");
  std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/classaccess-store-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return "";
  directories().push_back(pattern);
  return pattern;
}

void remove_directories() {
  std::error_code ignored;
  for (const std::string& directory : directories()) std::filesystem::remove_all(directory, ignored);
}

}  // namespace classaccess
