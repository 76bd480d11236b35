#include "agent/store/thread_rows.h"

namespace classaccess {

bool ThreadRows::prepare(Database& database) {
  return upsert_.prepare(database,
                         "INSERT INTO thread(id, tid, name, kind, started_ns, ended_ns) VALUES(?,?,?,?,?,?) "
                         "ON CONFLICT(id) DO UPDATE SET name = excluded.name, ended_ns = excluded.ended_ns");
}

bool ThreadRows::flush() {
  for (const auto& [id, row] : changed_) {
    upsert_.bind(1, id);
    upsert_.bind(2, row.tid);
    upsert_.bind_text_or_null(3, row.name);
    upsert_.bind_text(4, row.kind);
    upsert_.bind(5, row.started_ns);
    upsert_.bind_or_null(6, row.ended_ns, row.has_ended);
    if (!upsert_.run()) return false;
  }
  changed_.clear();
  return true;
}

}  // namespace classaccess
