// Which sites get a probe, and when.
#include <string.h>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/fault/library_texts.h"
#include "agent/fault/probed_access.h"

namespace classaccess {
namespace {

// The second trap of a site makes its probe.
constexpr uint8_t kTrapsBeforeProbe = 2;
// In a library three system calls and two interrupts of all cores more.
constexpr uint8_t kTrapsBeforeLibraryProbe = 4;

}  // namespace

void ProbedAccess::consider(CachedInstruction* row, const CpuState& cpu) {
  if (!enabled() || row->id == 0 || held_.load(std::memory_order_relaxed)) return;
  const VmLayout& layout = *path_->layout;
  const bool library = !layout.in_code_cache(row->pc);
  // Shenandoah copies objects on the program's threads, and only the caller tells (vm_caller).
  if (library && (layout.collector == Collector::kShenandoah || !g_probes.library_room().created() ||
                  !g_library_texts.contains(row->pc))) {
    return count(g_counters.traps_native);
  }
  if (row->no_probe.load(std::memory_order_relaxed)) {
    const Refusal* refusal = refusal_of(static_cast<LayResult>(row->why_not.load(std::memory_order_relaxed)));
    if (refusal != nullptr) count(refusal->traps);  // null: taken back, see probes_outside
    return;
  }
  const int enough = library ? kTrapsBeforeLibraryProbe : kTrapsBeforeProbe;
  if (row->traps.fetch_add(1, std::memory_order_relaxed) + 1 < enough) return;
  // Single rows want the value that was moved: only a trap sees it.
  if (path_->values && g_single_rows.load(std::memory_order_relaxed)) return;
  ProbeSites::Request request;
  request.pc = row->pc;
  request.instruction = &row->instruction;
  request.owner = row;
  request.kind = library                          ? ProbeKind::kLibrary
                 : layout.in_interpreter(row->pc) ? ProbeKind::kInterpreted
                                                  : ProbeKind::kCompiled;
  if (request.kind != ProbeKind::kInterpreted) request.site_id = path_->site_of(row, cpu);
  // They run in native state, during pauses too: what they record may be old when it is looked at.
  const SiteInfo& site = path_->sites->row(request.site_id);
  request.patched = request.site_id == 0 || site.kind != SiteKind::kC2;
  bool native_stub = request.site_id != 0 && site.kind == SiteKind::kStub && site.stub_name != nullptr &&
                     strncmp(site.stub_name, "jni_fast", 8) == 0;
  LayResult result = native_stub ? LayResult::kUnfit : g_probes.lay(request);
  if (result == LayResult::kLaid || result == LayResult::kBusy) return;
  if (log_enabled(LogLevel::kDebug)) {
    uint64_t bytes[2] = {};
    memcpy(bytes, reinterpret_cast<const void*>(row->pc), sizeof(bytes));
    raw_log(LogLevel::kDebug, "not probed: pc %lx reason %d length %d bytes (little-endian) %lx %lx", row->pc,
            static_cast<int>(result), row->instruction.length, bytes[0], bytes[1]);
  }
  row->why_not.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
  row->no_probe.store(true, std::memory_order_relaxed);
}

}  // namespace classaccess
