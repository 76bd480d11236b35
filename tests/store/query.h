// Reads a database as a user would: mode=ro, SQL, text results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace classaccess {

// Rows as "a|b|c" (NULL is empty), or one row "error: ..." .
std::vector<std::string> query(const std::string& path, const std::string& sql);
// The first row of query().
std::string query_one(const std::string& path, const std::string& sql);
int64_t query_number(const std::string& path, const std::string& sql);

bool exists(const std::string& path);
// A fresh directory below the system's temporary one.
std::string make_directory();
// Those that were made; not called after a failure.
void remove_directories();

}  // namespace classaccess
