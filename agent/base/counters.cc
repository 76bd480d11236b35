#include "agent/base/counters.h"

namespace classaccess {

Counters g_counters;
std::atomic<RecordingState> g_recording{RecordingState::kOff};
std::atomic<bool> g_single_rows{true};
std::atomic<uint32_t> g_gc_id{0};
std::atomic<uint32_t> g_gc_finished{0};

void reset_counters() {
#define X(name, unit) g_counters.name.store(0, std::memory_order_relaxed);
  CLASSACCESS_COUNTERS(X)
#undef X
  g_gc_id.store(0, std::memory_order_relaxed);
  g_gc_finished.store(0, std::memory_order_relaxed);
}

}  // namespace classaccess
