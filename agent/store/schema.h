// The database schema (interface.md section 2, user_version 1), as SQL text.
//
// Single rows are stored packed. `event` holds only what differs from row to row;
// everything a row shares with the others of its (thread, site, class, field, part,
// op) stands once in `tally`, which also carries the exact counts. `access` and
// `access_count` are views over the two.
//  - event.object is (object - run.heap_start) / 8: objects are 8-byte aligned, so a
//    heap of up to 16 GB needs 4 bytes. NULL if the object is not known.
//  - event.at is address - object (address - run.heap_start without an object), NULL if
//    it equals tally.at; event.size likewise. A field is nearly always touched at the
//    same offset with the same size, so both are mostly NULL and cost one byte each.
//  - the element index is (address - object - tally.base) >> tally.shift.
//  - part is NULL for an access whose object could not be told.
// `event` has neither index nor constraint: each would cost more than the rows.
// Context: writer thread, and open() before it runs.
#pragma once

#include <cstdint>

namespace classaccess {

constexpr int kApplicationId = 0x434C4143;  // "CLAC"
constexpr int kUserVersion = 1;

inline constexpr const char kSchemaTables[] = R"sql(
CREATE TABLE run (
  started_at TEXT, ended_at TEXT, status TEXT NOT NULL, pid INTEGER, command TEXT,
  jvm_version TEXT, jvm_vendor TEXT, gc TEXT, heap_start INTEGER NOT NULL, heap_size INTEGER,
  page_size INTEGER, protection TEXT, options TEXT, agent_version TEXT);
CREATE TABLE class (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, super_id INTEGER,
  instance_size INTEGER, loader TEXT);
CREATE TABLE field (
  id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
  offset INTEGER NOT NULL, is_static INTEGER NOT NULL);
CREATE TABLE thread (
  id INTEGER PRIMARY KEY, tid INTEGER, name TEXT, kind TEXT NOT NULL, carrier_id INTEGER,
  started_ns INTEGER, ended_ns INTEGER);
CREATE TABLE site (
  id INTEGER PRIMARY KEY, pc INTEGER, kind TEXT NOT NULL, method TEXT, signature TEXT,
  bci INTEGER, line INTEGER, library TEXT, symbol TEXT, instruction TEXT);
CREATE TABLE gc (id INTEGER PRIMARY KEY, start_ns INTEGER, end_ns INTEGER, cause TEXT);
CREATE TABLE diagnostic (name TEXT PRIMARY KEY, value INTEGER NOT NULL, unit TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tally (
  id INTEGER PRIMARY KEY, thread_id INTEGER, site_id INTEGER, class_id INTEGER, field_id INTEGER,
  part TEXT, op TEXT, at INTEGER, size INTEGER, base INTEGER, shift INTEGER,
  count INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE event (
  seq INTEGER PRIMARY KEY, tally INTEGER, t_ns INTEGER, gc_id INTEGER, object INTEGER,
  at INTEGER, size INTEGER, value INTEGER);
)sql";

inline constexpr const char kSchemaViews[] = R"sql(
CREATE VIEW access AS
SELECT e.seq AS seq, t.thread_id AS thread_id, e.t_ns AS t_ns, e.gc_id AS gc_id, t.site_id AS site_id,
  t.class_id AS class_id, t.field_id AS field_id, t.part AS part,
  (coalesce(e.at, t.at) - t.base) >> t.shift AS element,
  (SELECT heap_start FROM run) + e.object * 8 AS object,
  (SELECT heap_start FROM run) + coalesce(e.object * 8, 0) + coalesce(e.at, t.at) AS address,
  coalesce(e.size, t.size) AS size, t.op AS op, e.value AS value
FROM event e LEFT JOIN tally t ON t.id = e.tally;

CREATE VIEW access_count AS
SELECT thread_id, site_id, class_id, field_id, part, op, count, bytes FROM tally;

CREATE VIEW v_access AS
SELECT a.seq AS seq, a.t_ns AS t_ns, th.name AS thread, c.name AS class,
  d.name AS declaring_class, f.name AS field, a.part AS part, a.element AS element, a.op AS op, a.size AS size,
  a.value AS value, s.kind AS site_kind, coalesce(s.method, s.symbol) AS method, s.line AS line,
  s.instruction AS instruction, a.gc_id AS gc_id,
  CASE WHEN a.object IS NOT NULL THEN printf('0x%x', a.object) END AS object, printf('0x%x', a.address) AS address
FROM access a
LEFT JOIN thread th ON th.id = a.thread_id
LEFT JOIN class c ON c.id = a.class_id
LEFT JOIN field f ON f.id = a.field_id
LEFT JOIN class d ON d.id = f.class_id
LEFT JOIN site s ON s.id = a.site_id;

CREATE VIEW v_class AS
SELECT c.id AS class_id, coalesce(c.name, '(not resolved)') AS class, sum(t.count) AS accesses,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0) AS stores,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0) AS rmws, sum(t.bytes) AS bytes,
  count(DISTINCT t.thread_id) AS threads,
  round(100.0 * sum(t.count) / (SELECT max(sum(count), 1) FROM tally), 2) AS share
FROM tally t LEFT JOIN class c ON c.id = t.class_id
GROUP BY t.class_id ORDER BY accesses DESC;

CREATE VIEW v_field AS
SELECT f.id AS field_id, c.name AS class, f.name AS field, f.type AS type, f.is_static AS is_static,
  coalesce(sum(t.count), 0) AS accesses,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0) AS stores,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0) AS rmws,
  coalesce(sum(t.bytes), 0) AS bytes, count(DISTINCT t.thread_id) AS threads,
  round(100.0 * coalesce(sum(t.count), 0) / (SELECT max(sum(count), 1) FROM tally), 2) AS share
FROM field f JOIN class c ON c.id = f.class_id LEFT JOIN tally t ON t.field_id = f.id
GROUP BY f.id ORDER BY accesses DESC;

CREATE VIEW v_thread_class AS
SELECT th.id AS thread_id, th.name AS thread, coalesce(c.name, '(not resolved)') AS class, sum(t.count) AS accesses,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0) AS stores,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0) AS rmws, sum(t.bytes) AS bytes
FROM tally t LEFT JOIN thread th ON th.id = t.thread_id LEFT JOIN class c ON c.id = t.class_id
GROUP BY t.thread_id, t.class_id ORDER BY accesses DESC;

CREATE VIEW v_site AS
SELECT s.id AS site_id, s.kind AS kind, s.method AS method, s.line AS line, s.bci AS bci, s.library AS library,
  s.symbol AS symbol, s.instruction AS instruction, sum(t.count) AS accesses,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0) AS stores,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0) AS rmws, sum(t.bytes) AS bytes,
  count(DISTINCT t.class_id) AS classes, count(DISTINCT t.thread_id) AS threads
FROM tally t LEFT JOIN site s ON s.id = t.site_id
GROUP BY t.site_id ORDER BY accesses DESC;

CREATE VIEW v_never_read AS
SELECT f.id AS field_id, c.name AS class, f.name AS field, f.type AS type, f.is_static AS is_static,
  sum(t.count) AS stores, count(DISTINCT t.thread_id) AS threads
FROM tally t JOIN field f ON f.id = t.field_id JOIN class c ON c.id = f.class_id
GROUP BY f.id HAVING sum(t.op <> 'store') = 0 ORDER BY stores DESC;

CREATE VIEW v_shared AS
SELECT 'class' AS scope, c.name AS class, NULL AS object, NULL AS gc_id, count(DISTINCT t.thread_id) AS threads,
  coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads,
  coalesce(sum(t.count) FILTER (WHERE t.op <> 'load'), 0) AS stores
FROM tally t JOIN class c ON c.id = t.class_id
GROUP BY t.class_id HAVING count(DISTINCT t.thread_id) > 1
UNION ALL
SELECT 'object', c.name, printf('0x%x', a.object), a.gc_id, count(DISTINCT a.thread_id),
  sum(a.op = 'load'), sum(a.op <> 'load')
FROM access a JOIN class c ON c.id = a.class_id
WHERE a.object IS NOT NULL
GROUP BY a.gc_id, a.object HAVING count(DISTINCT a.thread_id) > 1;

CREATE VIEW v_false_sharing AS
WITH touched AS (
  SELECT gc_id, address >> 6 AS line, thread_id, object, class_id, field_id, element,
    sum(op <> 'load') AS stores, count(*) AS touches
  FROM access WHERE object IS NOT NULL AND part IN ('field', 'static', 'element')
  GROUP BY gc_id, line, thread_id, object, field_id, element),
named AS (
  SELECT t.*, c.name AS class, coalesce(f.name, '[' || t.element || ']') AS field, th.name AS thread
  FROM touched t LEFT JOIN class c ON c.id = t.class_id LEFT JOIN field f ON f.id = t.field_id
  LEFT JOIN thread th ON th.id = t.thread_id)
SELECT printf('0x%x', s.line << 6) AS line, s.gc_id AS gc_id, s.class AS class, s.field AS field, s.thread AS thread,
  s.stores AS stores, o.class AS other_class, o.field AS other_field, o.thread AS other_thread,
  o.touches AS other_touches
FROM named s JOIN named o ON o.line = s.line AND o.gc_id IS s.gc_id AND o.thread_id <> s.thread_id AND
  (o.object <> s.object OR o.field_id IS NOT s.field_id OR o.element IS NOT s.element)
WHERE s.stores > 0 ORDER BY s.stores + o.touches DESC;
)sql";

}  // namespace classaccess
