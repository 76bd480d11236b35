#include "agent/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/raw_log.h"
#include "agent/store/call_schema.h"
#include "agent/store/page_schema.h"
#include "agent/store/schema.h"

namespace classaccess {
namespace {

constexpr int kPageBytes = 4096;
constexpr int kCheckpointPages = 16 * 1024 * 1024 / kPageBytes;
constexpr int kWalWarnPages = 1024 * 1024 * 1024 / kPageBytes;
constexpr int kStartBusyMs = 5000;  // nobody else knows the file yet
constexpr uint64_t kRetryNs = 10000000;

std::string errno_text(int code) {
  char buffer[128];
  return strerror_r(code, buffer, sizeof(buffer));
}

// Directory part resolved, so that neither a later chdir nor a name such as "file:x"
// changes what is meant.
std::string absolute_path(const std::string& path, std::string* reason) {
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    *reason = "cannot create '" + path + "': it names a directory";
    return "";
  }
  char resolved[PATH_MAX];
  if (realpath(directory.c_str(), resolved) == nullptr) {
    *reason = "cannot create '" + path + "': directory '" + directory + "': " + errno_text(errno);
    return "";
  }
  std::string base = resolved;
  return base == "/" ? base + name : base + "/" + name;
}

bool is_network_file_system(const std::string& path) {
  struct statfs fs;
  if (statfs(path.c_str(), &fs) != 0) return false;
  switch (static_cast<uint32_t>(fs.f_type)) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case 0xFF534D42u:  // CIFS
    case 0xFE534D42u:  // SMB2
    case AFS_SUPER_MAGIC:
    case V9FS_MAGIC:
    case 0x00C36400u:  // Ceph
    case 0x0BD00BD0u:  // Lustre
    case 0x47504653u:  // GPFS
      return true;
    default: return false;
  }
}

// The process that has this database open, 0 if none: a WAL connection holds SQLite's
// shared lock (os.h: bytes 0x40000002 .. +510) for as long as it lives.
int holder_of(const std::string& path) {
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0x40000000;
  lock.l_len = 512;
  int pid = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
  close(fd);
  return pid;
}

int on_wal_commit(void* pages, sqlite3*, const char*, int in_wal) {
  *static_cast<int*>(pages) = in_wal;
  return SQLITE_OK;
}

// The errno of the failed write. sqlite3_system_errno() is taken after the automatic
// rollback, when it may be another one; the file keeps its own.
int errno_of(sqlite3* handle) {
  int code = 0;
  sqlite3_file* journal = nullptr;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal);
  if (journal != nullptr && journal->pMethods != nullptr) {
    journal->pMethods->xFileControl(journal, SQLITE_FCNTL_LAST_ERRNO, &code);
  }
  if (code == 0) sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &code);
  return code != 0 ? code : sqlite3_system_errno(handle);
}

// A lock of another connection. SQLITE_PROTOCOL: WAL's own locks were busy for ten seconds.
bool is_lock(int code) {
  int primary = code & 0xff;
  return primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_PROTOCOL;
}

int read_text(void* out, int columns, char** values, char**) {
  if (columns > 0 && values[0] != nullptr) *static_cast<std::string*>(out) = values[0];
  return 0;
}

}  // namespace

Statement::~Statement() { finalize(); }

void Statement::finalize() {
  if (statement_ != nullptr && database_->handle_ != nullptr) sqlite3_finalize(statement_);
  statement_ = nullptr;
}

bool Statement::prepare(Database& database, const char* sql) {
  finalize();
  database_ = &database;
  if (database.handle_ == nullptr) return false;
  int code = sqlite3_prepare_v3(database.handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  return database.check(code, "prepare");
}

void Statement::bind(int index, int64_t value) { sqlite3_bind_int64(statement_, index, value); }
void Statement::bind_null(int index) { sqlite3_bind_null(statement_, index); }
void Statement::bind_text(int index, std::string_view text) {
  sqlite3_bind_text(statement_, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}
void Statement::bind_text_or_null(int index, std::string_view text) {
  text.empty() ? bind_null(index) : bind_text(index, text);
}
void Statement::bind_or_null(int index, int64_t value, bool present) {
  present ? bind(index, value) : bind_null(index);
}

bool Statement::run() {
  if (statement_ == nullptr || database_->failed()) return false;
  sqlite3_step(statement_);
  return database_->check(sqlite3_reset(statement_), "write");
}

bool Statement::run_for_integer(int64_t* value) {
  if (statement_ == nullptr || database_->failed()) return false;
  if (sqlite3_step(statement_) == SQLITE_ROW) *value = sqlite3_column_int64(statement_, 0);
  return database_->check(sqlite3_reset(statement_), "read");
}

Database::~Database() { close(); }

bool Database::check(int code, const char* what) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return true;
  if (failed_) return false;
  failed_ = true;
  int primary = code & 0xff;
  int system = handle_ != nullptr && (primary == SQLITE_IOERR || primary == SQLITE_FULL) ? errno_of(handle_) : 0;
  std::string why = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  bool full = primary == SQLITE_FULL || system == ENOSPC || system == EDQUOT || system == EFBIG;
  if (full) {
    why = system == EFBIG    ? "file size limit reached (" + errno_text(EFBIG) + ")"
          : system == EDQUOT ? errno_text(EDQUOT)
                             : errno_text(ENOSPC);
  } else if (primary == SQLITE_IOERR && system != 0) {
    why += " (" + errno_text(system) + ")";
  }
  error_ = "cannot " + std::string(what) + " '" + path_ + "': " + why;
  return false;
}

void Database::fail(const char* why) noexcept {
  if (failed_) return;
  failed_ = true;
  try {
    error_ = "cannot write '" + path_ + "': " + why;
  } catch (...) {
    error_ = "no memory";  // fits without any
  }
}

std::string Database::create(const std::string& path, bool overwrite) {
  std::string reason;
  error_.clear();
  failed_ = wal_ = in_transaction_ = locked_ = false;
  path_ = absolute_path(path, &reason);
  if (!reason.empty()) return reason;

  struct stat info;
  if (lstat(path_.c_str(), &info) == 0) {
    if (!overwrite) return "'" + path + "' exists already: choose another out=FILE or give overwrite=on";
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) return "cannot overwrite '" + path + "': not a regular file";
    int pid = holder_of(path_);
    if (pid != 0) return "cannot overwrite '" + path + "': process " + std::to_string(pid) + " is using it";
    if (unlink(path_.c_str()) != 0) return "cannot overwrite '" + path + "': " + errno_text(errno);
  }
  // Exclusive: of two JVMs with the same name one gets the error.
  int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) {
    if (errno == EEXIST) return "'" + path + "' exists already: choose another out=FILE or give overwrite=on";
    return "cannot create '" + path + "': " + errno_text(errno);
  }
  ::close(fd);
  // Left over from a database of the same name that was deleted without them.
  remove_companions();

  reason = open_new() ? set_up() : error_;
  if (!reason.empty()) remove();
  return reason;
}

// Opens the empty file.
bool Database::open_new() {
  int code = sqlite3_open_v2(path_.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (!check(code, "open")) return false;
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, kStartBusyMs);
  std::string pragmas = "PRAGMA page_size=" + std::to_string(kPageBytes) +
                        "; PRAGMA mmap_size=0; PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY;"
                        "PRAGMA secure_delete=0; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=NORMAL;"
                        "PRAGMA journal_size_limit=67108864;";
  return exec(pragmas.c_str());
}

// Switches to WAL. False with no error set if the file system cannot do it; then the
// file is empty and open again.
bool Database::enter_wal() {
  std::string mode;
  int code = sqlite3_exec(handle_, "PRAGMA journal_mode=WAL", read_text, &mode, nullptr);
  // The first transaction makes the -shm file, so a file system without shared memory shows here.
  if (code == SQLITE_OK) code = sqlite3_exec(handle_, "BEGIN IMMEDIATE; COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK && mode == "wal") return true;
  int system = errno_of(handle_);
  if ((code & 0xff) == SQLITE_FULL || system == EFBIG || system == ENOSPC || system == EDQUOT) {
    check(code, "create");
    return false;
  }
  raw_log(LogLevel::kWarn,
          "'%s': this file system cannot share memory for a -wal file (%s): using a rollback journal, readers "
          "may have to wait",
          path_.c_str(), sqlite3_errmsg(handle_));
  // The header says WAL already: start again with an empty file.
  close();
  remove_companions();
  if (truncate(path_.c_str(), 0) == 0) open_new();
  return false;
}

std::string Database::set_up() {
  if (is_network_file_system(path_)) {
    raw_log(LogLevel::kWarn, "'%s' is on a network file system: using a rollback journal, readers may have to wait",
            path_.c_str());
  } else {
    wal_ = enter_wal();
  }
  if (!wal_ && !exec("PRAGMA journal_mode=TRUNCATE")) return error_;
  sqlite3_wal_hook(handle_, on_wal_commit, &wal_pages_);

  std::string schema = "BEGIN IMMEDIATE; PRAGMA application_id=" + std::to_string(kApplicationId) +
                       "; PRAGMA user_version=" + std::to_string(kUserVersion) + ";" + kSchemaTables + kPageTables +
                       kCallTables + kSchemaViews + kPageViews + kCallViews +
                       "INSERT INTO run(status, heap_start, pid) VALUES('running', 0, " + std::to_string(getpid()) +
                       ");COMMIT;";
  if (!exec(schema.c_str())) return error_;
  return "";
}

bool Database::exec(const char* sql) {
  if (handle_ == nullptr || failed()) return false;
  return check(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr), "write");
}

void Database::wait_for_locks(int milliseconds) { sqlite3_busy_timeout(handle_, milliseconds); }

// BEGIN IMMEDIATE or COMMIT, the two statements that may meet a lock: inside a transaction
// we hold it, and a page cache that cannot spill because of readers grows instead.
bool Database::attempt(const char* sql) {
  if (handle_ == nullptr || failed()) return false;
  if (locked_ && monotonic_ns() < next_attempt_ns_) return false;
  int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  locked_ = is_lock(code);
  if (!locked_) return check(code, "write");
  next_attempt_ns_ = monotonic_ns() + kRetryNs;
  if (!warned_locked_) {
    warned_locked_ = true;
    raw_log(LogLevel::kWarn, "another process has locked '%s': what is recorded waits in memory until it lets go",
            path_.c_str());
  }
  return false;
}

bool Database::begin() {
  // A transaction whose COMMIT met a lock takes nothing more.
  if (in_transaction_ && locked_ && !commit()) return false;
  if (in_transaction_) return !failed();
  if (!attempt("BEGIN IMMEDIATE")) return false;
  in_transaction_ = true;
  return true;
}

bool Database::commit() {
  if (!in_transaction_) return !failed();
  if (!attempt("COMMIT")) return false;
  in_transaction_ = false;
  if (wal_ && wal_pages_ >= kCheckpointPages) watch_wal();
  return !failed();
}

// PASSIVE never waits for a reader; frames a reader still needs stay, and the file grows.
void Database::watch_wal() {
  int in_log = 0, moved = 0;
  int code = sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved);
  if (!is_lock(code) && !check(code, "checkpoint")) return;
  if (in_log > kWalWarnPages && moved < in_log && !warned_wal_) {
    warned_wal_ = true;
    raw_log(LogLevel::kWarn, "'%s-wal' has grown to %d MB because a reader keeps a transaction open", path_.c_str(),
            static_cast<int>(static_cast<int64_t>(in_log) * kPageBytes >> 20));
  }
}

bool Database::close_complete() {
  if (handle_ == nullptr || !commit()) return false;
  bool one_file = true;
  if (wal_) {
    // A reader may be in the middle of a query: give it two seconds.
    sqlite3_busy_timeout(handle_, 1000);
    uint64_t give_up = monotonic_ns() + 2000000000u;
    for (;;) {
      int code = sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
      std::string mode;
      if (code == SQLITE_OK) code = sqlite3_exec(handle_, "PRAGMA journal_mode=DELETE", read_text, &mode, nullptr);
      if (code == SQLITE_OK && mode == "delete") break;
      if (code != SQLITE_OK && !is_lock(code)) {
        check(code, "finish");
        break;
      }
      if (monotonic_ns() >= give_up) {
        one_file = false;
        raw_log(LogLevel::kWarn, "a reader has '%s' open: keep the '-wal' file beside it", path_.c_str());
        break;
      }
      usleep(20000);
    }
  } else {
    one_file = exec("PRAGMA journal_mode=DELETE");
  }
  close();
  return one_file && !failed();
}

void Database::close_failed() {
  if (handle_ != nullptr && in_transaction_) sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  in_transaction_ = false;
  close();
}

void Database::remove() {
  close();
  unlink(path_.c_str());
  remove_companions();
}

void Database::remove_companions() {
  for (const char* suffix : {"-wal", "-shm", "-journal"}) unlink((path_ + suffix).c_str());
}

void Database::close() {
  if (handle_ == nullptr) return;
  sqlite3_close_v2(handle_);
  handle_ = nullptr;
}

}  // namespace classaccess
