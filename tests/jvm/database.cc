#include "tests/jvm/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace classaccess {

Database::Database(const std::string& path, bool read_only) : path_(path) {
  int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) != SQLITE_OK) {
    error_ = db_ != nullptr ? sqlite3_errmsg(db_) : "no memory";
    sqlite3_close(db_);
    db_ = nullptr;
    return;
  }
  sqlite3_busy_timeout(db_, 5000);
}

Database::~Database() { sqlite3_close(db_); }

std::vector<Row> Database::rows(const std::string& sql) {
  std::vector<Row> result;
  if (db_ == nullptr) {
    ADD_FAILURE() << path_ << " is not open: " << error_;
    return result;
  }
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
  if (code == SQLITE_OK) {
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      Row row;
      for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const unsigned char* text = sqlite3_column_text(statement, i);
        row.emplace_back(text != nullptr ? reinterpret_cast<const char*>(text) : "");
      }
      result.push_back(std::move(row));
    }
  }
  if (code != SQLITE_DONE) {
    error_ = sqlite3_errmsg(db_);
    ADD_FAILURE() << path_ << ": " << error_ << "\n  in: " << sql;
  }
  sqlite3_finalize(statement);
  return result;
}

std::string Database::text(const std::string& sql) {
  std::vector<Row> all = rows(sql);
  return all.empty() || all[0].empty() ? "" : all[0][0];
}

int64_t Database::integer(const std::string& sql) { return std::strtoll(text(sql).c_str(), nullptr, 10); }

int64_t Database::diagnostic(const std::string& name) {
  return integer("SELECT value FROM diagnostic WHERE name = '" + name + "'");
}

std::string Database::unresolved_sites() {
  std::string text;
  for (const Row& row : rows("SELECT t.name, c.op, c.count, s.kind, coalesce(s.method, s.symbol), s.instruction "
                             "FROM access_count c LEFT JOIN site s ON s.id = c.site_id "
                             "LEFT JOIN thread t ON t.id = c.thread_id WHERE c.class_id IS NULL LIMIT 20")) {
    for (const std::string& column : row) text += column + " | ";
    text += "\n";
  }
  return text;
}

void Database::expect_whole() {
  EXPECT_EQ(text("PRAGMA integrity_check"), "ok") << path_;
  // One scan a table: they are long and have no index.
  for (const char* table : {"access", "access_count"}) {
    std::vector<Row> sums =
        rows(std::string("SELECT total(a.class_id IS NOT NULL AND coalesce(c.name, '') = ''), "
                         "total(a.field_id IS NOT NULL AND (coalesce(f.name, '') = '' OR coalesce(d.name, '') = '')), "
                         "total(t.name IS NULL), total(s.id IS NULL), "
                         "total(a.part IN ('field', 'static') AND a.field_id IS NULL), "
                         "total(a.part IS NOT NULL AND a.class_id IS NULL) FROM ") +
             table + " a LEFT JOIN class c ON c.id = a.class_id LEFT JOIN field f ON f.id = a.field_id " +
             "LEFT JOIN class d ON d.id = f.class_id LEFT JOIN thread t ON t.id = a.thread_id " +
             "LEFT JOIN site s ON s.id = a.site_id");
    if (sums.empty()) return;
    const char* what[] = {"without a class name", "without a field name",        "without a thread name",
                          "without a site",       "of a field that is not told", "with a part but no class"};
    for (size_t i = 0; i < std::size(what); i++) EXPECT_EQ(sums[0][i], "0.0") << table << " rows " << what[i];
  }
}

bool file_exists(const std::string& path) {
  std::error_code ec;
  return std::filesystem::exists(path, ec);
}

}  // namespace classaccess
