// The recording's SQLite file: one connection, made by open(), used by the writer
// thread, closed by it.
//
// WAL, so that others read with mode=ro while we write. Every SQLite up to 3.51.2 (Debian's
// 3.40.1 among them) can lose committed pages when one connection checkpoints while
// another writes ("WAL-reset bug", sqlite.org/wal.html): so exactly one connection,
// this one, writes and checkpoints, and automatic checkpoints are off. A network file system,
// or one that cannot share memory, gets a rollback journal and a warning.
// mmap_size is 0: a mapped file that is truncated is SIGBUS inside the application. The
// -shm file is mapped, but SQLite allocates its blocks by writing before it maps them.
// synchronous=NORMAL: kill -9 loses nothing that was committed.
//
// Errors are sticky: after the first one every call fails at once and error() tells what
// happened. Nothing throws but std::bad_alloc. Another process's lock is no error.
// Context: one thread at a time, never a signal handler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace classaccess {

class Database;

// A prepared statement. run() executes it once and resets it (an unfinished statement
// would starve checkpoints); bindings stay until bound again.
class Statement {
 public:
  Statement() = default;
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool prepare(Database& database, const char* sql);
  void finalize();

  void bind(int index, int64_t value);
  void bind_null(int index);
  void bind_text(int index, std::string_view text);          // copied; must be UTF-8
  void bind_text_or_null(int index, std::string_view text);  // empty: NULL
  void bind_or_null(int index, int64_t value, bool present);

  [[nodiscard]] bool run();
  // run() for a statement that gives one integer.
  [[nodiscard]] bool run_for_integer(int64_t* value);

 private:
  sqlite3_stmt* statement_ = nullptr;
  Database* database_ = nullptr;
};

class Database {
 public:
  Database() = default;
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Creates `path` with the schema. Empty string, or the reason; then nothing is left
  // behind (an existing file is untouched unless `overwrite`).
  std::string create(const std::string& path, bool overwrite);

  bool exec(const char* sql);
  // begin: no-op inside a transaction; commit: and a checkpoint when the -wal file has
  // grown enough. False with failed() false: another process holds its lock (sqlite.org,
  // "BEGIN IMMEDIATE", or a reader where there is a rollback journal); nothing is lost,
  // a transaction stays as it is: call again later. After wait_for_locks(0) they never
  // wait, and calls closer together than 10 ms answer at once.
  bool begin();
  bool commit();
  bool locked() const { return locked_; }
  void wait_for_locks(int milliseconds);
  bool in_transaction() const { return in_transaction_; }

  // A normal end: commits, moves everything into the one file, closes. False if a
  // reader kept the -wal file in use (all is readable all the same) or on an error.
  bool close_complete();
  // After an error: rolls back and closes; what was committed stays readable.
  void close_failed();
  // Closes and removes the file.
  void remove();
  // In a fork child: forget the handle; closing it would touch the parent's file.
  void forget() { handle_ = nullptr; }

  bool is_open() const { return handle_ != nullptr; }
  bool failed() const { return failed_; }
  // Makes `why` the error, if there is none yet: "cannot write 'path': why".
  void fail(const char* why) noexcept;
  const std::string& error() const { return error_; }
  const std::string& path() const { return path_; }  // absolute
  bool wal() const { return wal_; }
  sqlite3* handle() const { return handle_; }

  // Used by Statement; records the first error. True if `code` is no error.
  bool check(int code, const char* what);

 private:
  friend class Statement;
  bool attempt(const char* sql);
  bool open_new();
  bool enter_wal();
  std::string set_up();
  void watch_wal();
  void remove_companions();
  void close();

  sqlite3* handle_ = nullptr;
  std::string path_;
  std::string error_;
  bool failed_ = false;
  bool in_transaction_ = false;
  bool locked_ = false, warned_locked_ = false;
  uint64_t next_attempt_ns_ = 0;
  bool wal_ = false;
  bool warned_wal_ = false;
  int wal_pages_ = 0;
};

}  // namespace classaccess
