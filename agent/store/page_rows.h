// The tables of mode=pages: adds up page records, and what lives on the pages, between two commits.
//
// Memory: one entry for each (thread, page, op, 100 ms) and each pair of pages since the last commit; while
// another process keeps the database locked, since the lock.
// Context: writer thread; put_contents: any thread, not a signal handler.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "agent/store/database.h"
#include "classaccess/record.h"

namespace classaccess {

// What lives on the pages, as a walk of the heap has found it.
struct PageContents {
  struct Share {
    uint32_t page = 0;
    uint32_t class_id = 0;
    uint64_t bytes = 0;
  };
  std::vector<Share> shares;
  std::map<uint32_t, std::string> regions;  // page -> the kinds of its regions: "eden", "old", "eden+old"
};

class PageRows {
 public:
  static constexpr uint64_t kBucketNs = 100000000;

  bool prepare(Database& database);
  void finalize();

  // `record` is of kind kPage.
  void take(uint32_t thread_id, const AccessRecord& record, uint64_t started_ns);

  // Replaces what the tables say of the pages that have been touched.
  void put_contents(PageContents contents);

  // Before and after a round over all rings: what was put before it speaks of touches that it has seen.
  bool take_contents();
  void contents_taken() { has_contents_ = true; }
  bool has_changes();

  // Writes what was taken. Needs a transaction. ensure_class(id): writes the class's row if it is not there yet.
  template <typename EnsureClass>
  bool flush(EnsureClass&& ensure_class) {
    return flush_counts() && flush_contents(std::forward<EnsureClass>(ensure_class));
  }

 private:
  struct CountKey {
    uint32_t thread_id, page, bucket;
    Op op;
    bool operator==(const CountKey&) const = default;
  };
  struct CountHash {
    size_t operator()(const CountKey& key) const {
      uint64_t low = uint64_t{key.page} << 32 | key.thread_id;
      uint64_t high = uint64_t{key.bucket} << 8 | static_cast<uint8_t>(key.op);
      return static_cast<size_t>((low ^ (high * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu >> 16);
    }
  };
  struct Times {
    int64_t first_ns = 0, last_ns = 0;
  };

  bool flush_counts();
  bool flush_regions();
  bool flush_share(const PageContents::Share& share);
  template <typename EnsureClass>
  bool flush_contents(EnsureClass&& ensure_class);

  std::unordered_map<CountKey, uint64_t, CountHash> counts_;
  std::unordered_map<uint64_t, uint64_t> transitions_of_;  // from << 32 | to
  std::unordered_map<uint32_t, Times> times_;
  // Every page that was ever touched: contents of others are not kept.
  std::vector<bool> touched_;

  std::mutex mutex_;
  bool has_new_ = false;
  PageContents new_;  // under mutex_
  PageContents writing_;
  bool has_contents_ = false;

  Statement count_, transition_, page_, clear_shares_, share_, region_;
};

template <typename EnsureClass>
bool PageRows::flush_contents(EnsureClass&& ensure_class) {
  if (!has_contents_) return true;
  if (!clear_shares_.run()) return false;
  for (const PageContents::Share& share : writing_.shares) {
    if (share.page >= touched_.size() || !touched_[share.page]) continue;
    if (!ensure_class(share.class_id) || !flush_share(share)) return false;
  }
  if (!flush_regions()) return false;
  has_contents_ = false;
  writing_ = {};
  return true;
}

}  // namespace classaccess
