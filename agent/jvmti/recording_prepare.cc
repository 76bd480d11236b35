// What is done before the program runs, and before its heap exists: options checked, the VM's layout read, a back
// end chosen, the heap's mapping intercepted, the database made.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/raw_log.h"
#include "agent/hotspot/layout_probe.h"
#include "agent/jvmti/failed_start.h"
#include "agent/jvmti/recording.h"
#include "agent/jvmti/virtual_mounts.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/code_cache_room.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/heap_mappings.h"
#include "agent/protect/library_room.h"
#include "agent/protect/protection_key.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

std::string absolute(const std::string& path) {
  char* folder = path[0] == '/' ? nullptr : getcwd(nullptr, 0);
  std::string whole = folder != nullptr ? std::string(folder) + "/" + path : path;
  free(folder);
  return whole;
}

Recording* g_prepared = nullptr;
void at_process_end() { g_prepared->abandon_if_not_begun(); }

}  // namespace

std::string Recording::check_flags() const {
  if (layout_.collector == Collector::kZ) return "ZGC is not supported by this build: use another collector";
  if (layout_.collector == Collector::kUnknown) return "the JVM's collector is not supported by this build";
  if (vm_.flag_bool("UseLargePages") && !vm_.flag_bool("UseTransparentHugePages")) {
    return "-XX:+UseLargePages is not supported by this build";
  }
  if (!vm_.flag_text("AllocateHeapAt").empty()) return "-XX:AllocateHeapAt is not supported by this build";
  if (vm_.flag_bool("UseNUMA")) return "-XX:+UseNUMA is not supported by this build";
  return "";
}

std::string Recording::check(const Options& options) {
  ClassPatterns patterns;
  for (const std::string& item : options.classes) {
    std::string problem = patterns.add(item);
    if (!problem.empty()) return "option 'classes': `" + item + "`: " + problem;
  }
  return "";
}

std::string Recording::look_at_vm() {
  std::string problem = vm_.load();
  if (problem.empty()) problem = probe_layout(&layout_, vm_);
  if (problem.empty()) problem = check_flags();
  if (!problem.empty()) return problem;
  max_heap_bytes_ = max_heap_size(vm_);
  return max_heap_bytes_ == 0 ? "the JVM has no flag MaxHeapSize" : "";
}

std::string Recording::take_capabilities() {
  jvmtiCapabilities wanted;
  memset(&wanted, 0, sizeof(wanted));
  wanted.can_generate_garbage_collection_events = 1;
  wanted.can_generate_compiled_method_load_events = 1;
  wanted.can_tag_objects = late_ || options_.mode == Mode::kPages ? 1 : 0;  // for a heap walk
  if (!late_ && (wants_probes() || times_calls())) want_virtual_mounts(layout_.jdk_major, &wanted);
  if (!options_.java_calls.empty()) JavaCalls::want(&wanted);
  return jvmti_->AddCapabilities(&wanted) == JVMTI_ERROR_NONE ? "" : "the JVM refuses the capabilities we need";
}

// For probes, before our own tables take the place and before the VM reserves anything.
void Recording::reserve_rooms() {
  if (!wants_probes()) return;
  want_code_cache_room();
  reserve_library_room(reinterpret_cast<uint64_t>(jvmti_->functions->GetTime));
}

std::string Recording::prepare_later(jvmtiEnv* jvmti, const Options& options) {
  options_ = options;
  jvmti_ = jvmti;
  std::string problem = check(options);
  if (problem.empty()) problem = look_at_vm();
  if (problem.empty()) problem = choose_twin();
  if (problem.empty()) problem = take_capabilities();
  if (!problem.empty()) return problem;
  reserve_rooms();
  // Otherwise compiled code would have less debug information.
  jvmti_->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, nullptr);
  HeapMappingsLock lock;
  g_gate.end();
  return install_heap_mappings(max_heap_bytes_, twin_use_);
}

std::string Recording::take_steps() {
  for (const std::string& item : options_.classes) {
    std::string problem = patterns_.add(item);
    if (!problem.empty()) return "option 'classes': `" + item + "`: " + problem;
  }
  std::string problem = look_at_vm();
  if (!problem.empty()) return problem;
  bool generation = options_.heap == HeapScope::kOld || options_.heap == HeapScope::kYoung;
  if (generation && (layout_.collector == Collector::kShenandoah || layout_.collector == Collector::kEpsilon)) {
    return std::string("option 'heap': ") + collector_name(layout_.collector) +
           " has no generations to choose: use `all` or LO-HI";
  }
  tracker_.set_scope(options_.heap);
  if (options_.mode != Mode::kAccess) tracker_.set_unmarked();
  g_armed.unlimit();
  if (options_.heap == HeapScope::kRange) g_armed.limit(options_.heap_low, options_.heap_high);
  problem = choose_gate();
  if (problem.empty()) problem = choose_twin();
  if (!problem.empty()) return problem;
  thread_globs_.assign(options_.threads.begin(), options_.threads.end());
  if (!late_) reserve_rooms();
  if (!classes_.create(&patterns_, &layout_) || !methods_.create(&classes_, &layout_) ||
      !code_.create(&methods_, &layout_) || !sites_.create() || !instructions_.create() || !threads_.create() ||
      !virtual_threads_.create(&layout_, &threads_, thread_globs_.data(), thread_globs_.size()) ||
      !collections_.create(1u << 20)) {
    return "the address space for the tables could not be reserved (ulimit -v?)";
  }
  problem = take_capabilities();
  if (!problem.empty()) return problem;
  if (closes_heap()) {
    problem = late_ ? install_late_heap_mappings() : install_heap_mappings(max_heap_bytes_, twin_use_);
  }
  if (problem.empty()) problem = prepare_calls();
  if (!problem.empty()) return problem;
  // Last: with overwrite=on it takes an older recording away.
  WriterOptions writer;
  since_ = time(nullptr);
  writer.path = database_ = absolute(expand_path(options_.out, getpid(), since_));
  writer.overwrite = options_.overwrite;
  writer.max_events = options_.max_events;
  writer.values = options_.values;
  problem = writer_.open(writer);
  return problem.empty() ? "" : "option 'out': " + problem;
}

std::string Recording::prepare(jvmtiEnv* jvmti, const Options& options) {
  options_ = options;
  jvmti_ = jvmti;
  std::string problem = take_steps();
  if (!problem.empty()) {
    remove_heap_mappings();
    writer_.abandon();
    g_gate.release();
    return problem;
  }
  g_prepared = this;
  watch_process_end(vm_.anchor(), at_process_end);
  jvmti_->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, nullptr);
  jvmti_->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, nullptr);
  return "";
}

void Recording::abandon_if_not_begun() {
  if (!ever_begun_) writer_.abandon();
}

std::string Recording::choose_gate() {
  using BackEnd = HeapGate::BackEnd;
  const char* refused = "";
  if (!closes_heap()) return g_gate.choose(BackEnd::kMprotect);  // of no page
  if (options_.protect != ProtectChoice::kMprotect) {
    refused = g_gate.choose(BackEnd::kPkey);
    if (refused[0] == '\0') {
      if (options_.mode == Mode::kPages) g_key.alloc_page_keys();
      return "";
    }
    if (options_.protect == ProtectChoice::kPkey) return std::string("option 'protect': no protection key: ") + refused;
  }
  if (layout_.collector == Collector::kShenandoah) {
    std::string why = refused[0] != '\0' ? std::string(" (no protection key: ") + refused + ")" : "";
    return "Shenandoah is not supported with protect=mprotect" + why +
           ": its collector works on the heap while the program runs; use Serial, Parallel or G1";
  }
  if (refused[0] != '\0') raw_log(LogLevel::kWarn, "no protection key: %s; using protect=mprotect", refused);
  return g_gate.choose(BackEnd::kMprotect);
}

std::string Recording::choose_twin() {
  twin_use_ = TwinUse::kOff;
  if (!closes_heap()) return "";
  if (options_.twin == TwinChoice::kOff) {
    if (g_twin.created()) {
      raw_log(LogLevel::kWarn, "twin=off: this JVM's heap has its second view from an earlier recording, and keeps it");
    }
    return "";
  }
  int error = g_twin.open();
  if (error == 0) {
    twin_use_ = options_.twin == TwinChoice::kOn ? TwinUse::kRequired : TwinUse::kWherePossible;
    return "";
  }
  std::string why = std::string("memfd_create is refused (") + strerror(error) + ")";
  if (options_.twin == TwinChoice::kOn) return "option 'twin': " + why + ": use `auto` or `off`";
  raw_log(LogLevel::kWarn, "no second view of the heap: %s; using twin=off", why.c_str());
  return "";
}

void Recording::abandon_heap() {
  HeapMappingState heap = heap_mapping_state();
  {
    HeapMappingsLock lock;
    g_gate.end();
  }
  if (heap.found) {
    g_armed.clear(heap.low, heap.high);
  }
  // A shared heap keeps its hooks, which keep the two views alike.
  if (g_twin.created()) return;
  if (heap.found) g_committed.clear(heap.low, heap.high);
  remove_heap_mappings();
}

}  // namespace classaccess
