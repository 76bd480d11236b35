#include "agent/base/counters.h"

namespace classaccess {

Counters g_counters;
std::atomic<RecordingState> g_recording{RecordingState::kOff};
std::atomic<bool> g_single_rows{true};
std::atomic<uint32_t> g_gc_id{0};
std::atomic<uint32_t> g_gc_finished{0};

}  // namespace classaccess
