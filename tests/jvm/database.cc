#include "tests/jvm/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>

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

void Database::expect_whole() {
  EXPECT_EQ(text("PRAGMA integrity_check"), "ok") << path_;
  for (const char* table : {"access", "access_count"}) {
    std::string from = std::string(" FROM ") + table + " a ";
    EXPECT_EQ(integer("SELECT count(*)" + from + "LEFT JOIN class c ON c.id = a.class_id " +
                      "WHERE a.class_id IS NOT NULL AND coalesce(c.name, '') = ''"),
              0)
        << table << " rows without a class name";
    EXPECT_EQ(integer("SELECT count(*)" + from + "LEFT JOIN field f ON f.id = a.field_id " +
                      "LEFT JOIN class c ON c.id = f.class_id " +
                      "WHERE a.field_id IS NOT NULL AND (coalesce(f.name, '') = '' OR coalesce(c.name, '') = '')"),
              0)
        << table << " rows without a field name";
    EXPECT_EQ(integer("SELECT count(*)" + from + "LEFT JOIN thread t ON t.id = a.thread_id " +
                      "WHERE t.id IS NULL OR t.name IS NULL"),
              0)
        << table << " rows without a thread";
    EXPECT_EQ(integer("SELECT count(*)" + from + "LEFT JOIN site s ON s.id = a.site_id WHERE s.id IS NULL"), 0)
        << table << " rows without a site";
    EXPECT_EQ(integer("SELECT count(*)" + from + "WHERE part IN ('field', 'static') AND field_id IS NULL"), 0)
        << table << " rows of a field that is not told";
  }
}

bool file_exists(const std::string& path) {
  std::error_code ec;
  return std::filesystem::exists(path, ec);
}

}  // namespace classaccess
