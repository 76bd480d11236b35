#include "agent/store/page_rows.h"

#include <algorithm>
#include <utility>

namespace classaccess {
namespace {

const char* op_name(Op op) { return op == Op::kLoad ? "load" : op == Op::kStore ? "store" : "rmw"; }

}  // namespace

bool PageRows::prepare(Database& database) {
  return count_.prepare(database,
                        "INSERT INTO page_access(thread_id, page, op, bucket, count) VALUES(?,?,?,?,?) "
                        "ON CONFLICT(thread_id, page, op, bucket) DO UPDATE SET count = count + excluded.count") &&
         transition_.prepare(database,
                             "INSERT INTO page_transition(from_page, to_page, count) VALUES(?,?,?) "
                             "ON CONFLICT(from_page, to_page) DO UPDATE SET count = count + excluded.count") &&
         page_.prepare(database,
                       "INSERT INTO page(page, first_touch_ns, last_touch_ns) VALUES(?,?,?) "
                       "ON CONFLICT(page) DO UPDATE SET first_touch_ns = min(first_touch_ns, excluded.first_touch_ns), "
                       "last_touch_ns = max(last_touch_ns, excluded.last_touch_ns)") &&
         clear_shares_.prepare(database, "DELETE FROM page_class") &&
         share_.prepare(database, "INSERT INTO page_class(page, class_id, bytes) VALUES(?,?,?)") &&
         region_.prepare(database, "UPDATE page SET region = ? WHERE page = ?");
}

void PageRows::finalize() {
  for (Statement* statement : {&count_, &transition_, &page_, &clear_shares_, &share_, &region_}) {
    statement->finalize();
  }
}

void PageRows::take(uint32_t thread_id, const AccessRecord& record, uint64_t started_ns) {
  const auto page = static_cast<uint32_t>(record.address);
  const auto from = static_cast<uint32_t>(record.object);
  const auto t_ns = static_cast<int64_t>(record.t_ns - started_ns);
  const auto bucket = static_cast<uint32_t>(std::max<int64_t>(t_ns, 0) / static_cast<int64_t>(kBucketNs));
  ++counts_[{thread_id, page, bucket, record.op}];
  if (from != UINT32_MAX) ++transitions_of_[uint64_t{from} << 32 | page];
  auto [times, is_new] = times_.try_emplace(page, Times{t_ns, t_ns});
  if (!is_new) {
    times->second.first_ns = std::min(times->second.first_ns, t_ns);
    times->second.last_ns = std::max(times->second.last_ns, t_ns);
  }
  if (page >= touched_.size()) touched_.resize(std::max<size_t>(page + 1, 2 * touched_.size()));
  touched_[page] = true;
}

void PageRows::put_contents(PageContents contents) {
  std::lock_guard lock(mutex_);
  new_ = std::move(contents);
  has_new_ = true;
}

bool PageRows::has_changes() {
  if (!counts_.empty() || has_contents_) return true;
  std::lock_guard lock(mutex_);
  return has_new_;
}

bool PageRows::take_contents() {
  std::lock_guard lock(mutex_);
  if (!has_new_) return false;
  writing_ = std::move(new_);
  new_ = {};
  has_new_ = false;
  return true;
}

// Each entry leaves memory when it is written: after an error or a lock the rest is for the next call, and the
// transaction holds what was written.
bool PageRows::flush_counts() {
  for (auto it = counts_.begin(); it != counts_.end(); it = counts_.erase(it)) {
    count_.bind(1, it->first.thread_id);
    count_.bind(2, it->first.page);
    count_.bind_text(3, op_name(it->first.op));
    count_.bind(4, it->first.bucket);
    count_.bind(5, static_cast<int64_t>(it->second));
    if (!count_.run()) return false;
  }
  for (auto it = transitions_of_.begin(); it != transitions_of_.end(); it = transitions_of_.erase(it)) {
    transition_.bind(1, static_cast<int64_t>(it->first >> 32));
    transition_.bind(2, static_cast<int64_t>(it->first & UINT32_MAX));
    transition_.bind(3, static_cast<int64_t>(it->second));
    if (!transition_.run()) return false;
  }
  for (auto it = times_.begin(); it != times_.end(); it = times_.erase(it)) {
    page_.bind(1, it->first);
    page_.bind(2, it->second.first_ns);
    page_.bind(3, it->second.last_ns);
    if (!page_.run()) return false;
  }
  return true;
}

bool PageRows::flush_share(const PageContents::Share& share) {
  share_.bind(1, share.page);
  share_.bind(2, share.class_id);
  share_.bind(3, static_cast<int64_t>(share.bytes));
  return share_.run();
}

bool PageRows::flush_regions() {
  for (const auto& [page, region] : writing_.regions) {
    if (page >= touched_.size() || !touched_[page]) continue;
    region_.bind_text(1, region);
    region_.bind(2, page);
    if (!region_.run()) return false;
  }
  return true;
}

}  // namespace classaccess
