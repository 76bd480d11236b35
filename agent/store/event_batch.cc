#include "agent/store/event_batch.h"

#include <sqlite3.h>

#include <algorithm>
#include <new>

namespace classaccess {
namespace {

// The virtual table (sqlite.org/vtab.html), read-only, always scanned as a whole.
struct Table : sqlite3_vtab {
  const EventBatch* batch = nullptr;
};
struct Cursor : sqlite3_vtab_cursor {
  size_t at = 0;
};

int connect(sqlite3* handle, void* batch, int, const char* const*, sqlite3_vtab** out, char**) {
  int code = sqlite3_declare_vtab(handle, "CREATE TABLE batch(tally, t_ns, gc_id, object, at, size, value)");
  if (code != SQLITE_OK) return code;
  Table* table = new (std::nothrow) Table();
  if (table == nullptr) return SQLITE_NOMEM;
  table->batch = static_cast<const EventBatch*>(batch);
  *out = table;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new (std::nothrow) Cursor();
  return *out != nullptr ? SQLITE_OK : SQLITE_NOMEM;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

const EventBatch& batch_of(sqlite3_vtab_cursor* cursor) { return *static_cast<Table*>(cursor->pVtab)->batch; }

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  static_cast<Cursor*>(cursor)->at = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++static_cast<Cursor*>(cursor)->at;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor)->at >= batch_of(cursor).piece(); }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* result, int index) {
  const EventRow& row = batch_of(cursor).row(static_cast<Cursor*>(cursor)->at);
  if ((row.nulls >> index & 1) == 0) sqlite3_result_int64(result, row.column[index]);
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->at);
  return SQLITE_OK;
}

// Without xCreate it needs no CREATE VIRTUAL TABLE and leaves nothing in the file.
sqlite3_module make_module() {
  sqlite3_module module = {};
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}
const sqlite3_module kModule = make_module();

}  // namespace

bool EventBatch::prepare(Database& database) {
  return database.check(sqlite3_create_module(database.handle(), "event_batch", &kModule, this), "prepare") &&
         insert_.prepare(database,
                         "INSERT INTO event(tally, t_ns, gc_id, object, at, size, value) "
                         "SELECT tally, t_ns, gc_id, object, at, size, value FROM event_batch");
}

bool EventBatch::write_piece() {
  piece_ = std::min(rows_.size(), kPiece);
  if (piece_ == 0) return true;
  bool written = insert_.run();
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<ptrdiff_t>(piece_));
  return written;
}

}  // namespace classaccess
