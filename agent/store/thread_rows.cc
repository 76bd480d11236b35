#include "agent/store/thread_rows.h"

namespace classaccess {

bool ThreadRows::prepare(Database& database) {
  return upsert_.prepare(
      database,
      "INSERT INTO thread(id, tid, name, kind, started_ns, ended_ns, carrier_id) VALUES(?,?,?,?,?,?,?) "
      "ON CONFLICT(id) DO UPDATE SET name = excluded.name, ended_ns = excluded.ended_ns, "
      "carrier_id = excluded.carrier_id");
}

bool ThreadRows::flush() {
  for (const auto& [id, row] : changed_) {
    upsert_.bind(1, id);
    upsert_.bind_or_null(2, row.tid, row.tid != 0);
    if (row.may_be_unnamed) {
      upsert_.bind_text(3, row.name);
    } else {
      upsert_.bind_text_or_null(3, row.name);
    }
    upsert_.bind_text(4, row.kind);
    upsert_.bind(5, row.started_ns);
    upsert_.bind_or_null(6, row.ended_ns, row.has_ended);
    upsert_.bind_or_null(7, row.carrier_id, row.carrier_id != 0);
    if (!upsert_.run()) return false;
  }
  changed_.clear();
  return true;
}

}  // namespace classaccess
