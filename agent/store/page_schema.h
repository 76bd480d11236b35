// The tables of mode=pages (interface.md section 2), as SQL text; empty in other modes.
//
// A page's number counts from run.heap_start, rounded down to a whole page: its address is that plus
// page * run.page_size. page_access.bucket is t_ns / 100 ms.
// Context: as schema.h.
#pragma once

namespace classaccess {

inline constexpr const char kPageTables[] = R"sql(
CREATE TABLE page (page INTEGER PRIMARY KEY, first_touch_ns INTEGER, last_touch_ns INTEGER, region TEXT);
CREATE TABLE page_class (
  page INTEGER NOT NULL, class_id INTEGER, bytes INTEGER NOT NULL, PRIMARY KEY(page, class_id)) WITHOUT ROWID;
CREATE TABLE page_access (
  thread_id INTEGER NOT NULL, page INTEGER NOT NULL, op TEXT NOT NULL, bucket INTEGER NOT NULL,
  count INTEGER NOT NULL, PRIMARY KEY(thread_id, page, op, bucket)) WITHOUT ROWID;
CREATE TABLE page_transition (
  from_page INTEGER NOT NULL, to_page INTEGER NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY(from_page, to_page)) WITHOUT ROWID;
)sql";

inline constexpr const char kPageViews[] = R"sql(
CREATE VIEW v_page AS
WITH counted AS (
  SELECT page, sum(count) AS touches,
    coalesce(sum(count) FILTER (WHERE op = 'load'), 0) AS loads,
    coalesce(sum(count) FILTER (WHERE op = 'store'), 0) AS stores,
    coalesce(sum(count) FILTER (WHERE op = 'rmw'), 0) AS rmws,
    count(DISTINCT thread_id) AS threads
  FROM page_access GROUP BY page),
shares AS (
  SELECT pc.page AS page, c.name AS name,
    round(100.0 * pc.bytes / (SELECT page_size FROM run), 1) AS share,
    row_number() OVER (PARTITION BY pc.page ORDER BY pc.bytes DESC, c.name) AS place
  FROM page_class pc JOIN class c ON c.id = pc.class_id),
named AS (
  SELECT page, group_concat(name || ' ' || share || '%', ', ') AS classes
  FROM (SELECT * FROM shares WHERE place <= 5 ORDER BY page, place) GROUP BY page)
SELECT p.page AS page,
  printf('0x%x', (SELECT heap_start - heap_start % page_size FROM run) + p.page * (SELECT page_size FROM run))
    AS address,
  p.region AS region, n.touches AS touches, n.loads AS loads, n.stores AS stores, n.rmws AS rmws,
  n.threads AS threads, p.first_touch_ns AS first_touch_ns, p.last_touch_ns AS last_touch_ns, d.classes AS classes
FROM page p JOIN counted n ON n.page = p.page LEFT JOIN named d ON d.page = p.page
ORDER BY n.touches DESC;
)sql";

}  // namespace classaccess
