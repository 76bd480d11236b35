// The Recording's part of calls=.
#include <algorithm>
#include <vector>

#include "agent/base/raw_log.h"
#include "agent/calls/call_sink.h"
#include "agent/calls/java/virtual_calls.h"
#include "agent/calls/native/native_calls.h"
#include "agent/calls/native_hooks.h"
#include "agent/jvmti/recording.h"
#include "agent/jvmti/virtual_mounts.h"

namespace classaccess {

std::string Recording::prepare_calls() {
  if (!times_calls()) return "";
  static bool started = false;
  if (!started && !start_call_sink()) return "the address space for timed calls could not be reserved (ulimit -v?)";
  if (started) reset_call_sink();
  started = true;
  java_calls_.choose(options_.java_calls);
  return "";
}

// Last of the start: from here on calls are timed.
std::string Recording::start_calls(JNIEnv* jni) {
  if (!times_calls()) return "";
  const bool has_virtual = layout_.jdk_major >= 21;
  const bool watched = has_virtual && watch_virtual_mounts(jvmti_);
  if (!start_virtual_calls(has_virtual ? &virtual_threads_ : nullptr, watched)) return "no memory for virtual threads";
  g_call_rows.store(false, std::memory_order_relaxed);
  g_call_contexts_wanted.store(false, std::memory_order_relaxed);
  std::string problem;
  if (java_calls_.wanted()) problem = java_calls_.prepare(jvmti_, jni);
  g_call_rows.store(options_.max_events > 0, std::memory_order_relaxed);
  g_call_contexts_wanted.store(options_.mode == Mode::kAccess, std::memory_order_relaxed);
  g_calls_on.store(true, std::memory_order_release);
  if (problem.empty() && java_calls_.wanted()) problem = java_calls_.start(jvmti_, jni);
  if (problem.empty() && !options_.native_calls.empty()) {
    set_code_cache_rule();
    problem = start_native_calls(options_.native_calls);
  }
  return problem.empty() ? "" : "option 'calls': " + problem;
}

void Recording::set_code_cache_rule() {
  CodeCacheRule& rule = g_code_cache_rule;
  const auto state = vm_.offset("JavaThread", "_thread_state"), anchor = vm_.offset("JavaThread", "_anchor");
  const auto sp = vm_.offset("JavaFrameAnchor", "_last_Java_sp"), pc = vm_.offset("JavaFrameAnchor", "_last_Java_pc");
  const auto in_native = vm_.constant("_thread_in_native");
  if (state && anchor && sp && pc && in_native) {
    rule.thread_state = static_cast<uint32_t>(*state);
    rule.anchor_sp = static_cast<uint32_t>(*anchor + *sp);
    rule.anchor_pc = static_cast<uint32_t>(*anchor + *pc);
    rule.in_native = static_cast<int32_t>(*in_native);
  } else {
    rule.in_native = -1;  // no state: none is replaced
  }
  rule.low.store(layout_.code_low, std::memory_order_relaxed);
  rule.high.store(layout_.code_high, std::memory_order_relaxed);
}

// Counted by the threads themselves, which go on meanwhile.
std::string Recording::calls_status() const {
  if (!times_calls()) return "";
  constexpr size_t kShown = 10;
  std::vector<std::pair<uint64_t, uint32_t>> counts;  // calls, function
  uint64_t all = 0, under_way = 0;
  for (uint32_t id = g_first_call_function.load(std::memory_order_acquire); id < g_call_functions.end(); ++id) {
    uint64_t calls = 0;
    for_each_call_thread([&](const CallThread& thread) {
      const CallStat* stat = thread.stat(id);
      if (stat != nullptr) calls += __atomic_load_n(&stat->count, __ATOMIC_RELAXED);
    });
    if (calls != 0) counts.emplace_back(calls, id);
    all += calls;
  }
  for_each_call_thread([&](const CallThread& thread) { under_way += thread.depth; });
  std::string text = "timed calls: " + std::to_string(all) + ", " + std::to_string(under_way) +
                     " under way (threads that have ended are not counted)\n";
  std::sort(counts.rbegin(), counts.rend());
  for (size_t i = 0; i < counts.size() && i < kShown; ++i) {
    text += "  " + std::to_string(counts[i].first) + " " + g_call_functions.row(counts[i].second).name + "\n";
  }
  return text;
}

// Calls that begin from here on are not seen. At the process's end the hooks stay.
void Recording::stop_calls(JNIEnv* jni) {
  if (!times_calls()) return;
  if (jni != nullptr) {
    java_calls_.stop(jvmti_, jni);
    stop_native_calls();
  }
  g_calls_on.store(false, std::memory_order_release);
}

}  // namespace classaccess
