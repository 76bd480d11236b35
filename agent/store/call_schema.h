// The tables of calls= (interface.md section 2), as SQL text; empty without it.
//
// Times and durations of calls have the tool's own cost subtracted: call.end_ns is start_ns and the duration.
// call_class_count is inclusive: an access counts for every function under way on its thread, for each once.
// Context: as schema.h.
#pragma once

namespace classaccess {

inline constexpr const char kCallTables[] = R"sql(
CREATE TABLE function (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, library TEXT, address INTEGER, loaded TEXT,
  refused TEXT);
CREATE TABLE call (
  seq INTEGER PRIMARY KEY, function_id INTEGER NOT NULL, thread_id INTEGER, start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, self_ns INTEGER NOT NULL, depth INTEGER NOT NULL, parent_seq INTEGER,
  caller_site_id INTEGER, ended_by TEXT NOT NULL);
CREATE TABLE call_stat (
  function_id INTEGER NOT NULL, thread_id INTEGER NOT NULL, count INTEGER NOT NULL, untimed INTEGER NOT NULL,
  total_ns INTEGER NOT NULL, self_ns INTEGER NOT NULL, min_ns INTEGER, max_ns INTEGER,
  PRIMARY KEY(function_id, thread_id)) WITHOUT ROWID;
CREATE TABLE call_histogram (
  function_id INTEGER NOT NULL, log2_ns INTEGER NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY(function_id, log2_ns)) WITHOUT ROWID;
CREATE TABLE call_class_count (
  function_id INTEGER NOT NULL, thread_id INTEGER NOT NULL, class_id INTEGER, op TEXT NOT NULL,
  count INTEGER NOT NULL);
CREATE UNIQUE INDEX call_class_count_key ON call_class_count(function_id, thread_id, coalesce(class_id, 0), op);
)sql";

inline constexpr const char kCallViews[] = R"sql(
CREATE VIEW v_call AS
SELECT f.id AS function_id, f.name AS function, f.kind AS kind, f.library AS library,
  coalesce(sum(s.count), 0) AS calls, coalesce(sum(s.untimed), 0) AS untimed, count(DISTINCT s.thread_id) AS threads,
  coalesce(sum(s.total_ns), 0) AS total_ns, coalesce(sum(s.self_ns), 0) AS self_ns,
  CASE WHEN sum(s.count) > sum(s.untimed) THEN 1.0 * sum(s.total_ns) / (sum(s.count) - sum(s.untimed)) END AS mean_ns,
  min(s.min_ns) AS min_ns, max(s.max_ns) AS max_ns, f.refused AS refused
FROM function f LEFT JOIN call_stat s ON s.function_id = f.id
GROUP BY f.id ORDER BY total_ns DESC, calls DESC, f.name;

CREATE VIEW v_call_class AS
SELECT f.id AS function_id, f.name AS function, f.kind AS kind, c.id AS class_id,
  coalesce(c.name, '(not resolved)') AS class, sum(t.count) AS accesses,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0) AS stores,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0) AS rmws, count(DISTINCT t.thread_id) AS threads
FROM call_class_count t JOIN function f ON f.id = t.function_id LEFT JOIN class c ON c.id = t.class_id
GROUP BY t.function_id, t.class_id ORDER BY accesses DESC, function, class;
)sql";

}  // namespace classaccess
