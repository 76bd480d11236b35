// The writer's part of a live line (include/classaccess/control.h).
#include <sys/stat.h>

#include "agent/base/counters.h"
#include "agent/store/drain.h"

namespace classaccess {
namespace {

constexpr uint64_t kPublishNs = 200000000;

uint64_t file_bytes(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

}  // namespace

void Drain::publish(uint64_t now) {
  if (sources_.live == nullptr || database_.failed() || now - last_published_ns_ < kPublishNs) return;
  last_published_ns_ = now;
  LiveCounts& live = *sources_.live;
  live.accesses.store(counters_.accesses, std::memory_order_relaxed);
  live.page_touches.store(counters_.page_touches, std::memory_order_relaxed);
  live.calls.store(calls_.counted(), std::memory_order_relaxed);
  live.probes.store(g_counters.probes_laid.load(std::memory_order_relaxed), std::memory_order_relaxed);
  live.database_bytes.store(file_bytes(database_.path()) + file_bytes(database_.path() + "-wal"),
                            std::memory_order_relaxed);
}

}  // namespace classaccess
