#include "agent/jvmti/heap_tracker.h"

#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/base/reserve.h"
#ifdef CLASSACCESS_VERIFY
#include "agent/jvmti/heap_verify.h"
#endif
#include "agent/jvmti/open_tlabs.h"
#include "agent/protect/heap_gate.h"

namespace classaccess {
namespace {

using Kind = HeapSpace::Kind;

}  // namespace

void HeapTracker::read(Snapshot* snapshot) {
  if (snapshot->spaces == nullptr) snapshot->spaces = reserve_array<HeapSpace>(kMaxSpaces);
  snapshot->count = snapshot->spaces != nullptr ? regions_->read_spaces(snapshot->spaces, kMaxSpaces) : 0;
}

void HeapTracker::at_init(uint64_t tlab_reserve_bytes) {
  read(&after_);
  OpenTlabs tlabs;
  read_tlabs(*layout_, tlab_reserve_bytes, &tlabs);
  for (size_t i = 0; marks_ && i < after_.count; ++i) {
    const HeapSpace& space = after_.spaces[i];
    if (space.kind == Kind::kFree || space.kind == Kind::kHumongousContinues) continue;
    uint64_t reached = resolver_->walk(space.bottom, space.top, OpenTlabs::skip, &tlabs);
    raw_log(LogLevel::kDebug, "walked 0x%lx to 0x%lx of 0x%lx", space.bottom, reached, space.top);
    count(g_counters.heap_walks);
  }
}

void HeapTracker::apply_scope() {
  if (scope_ != HeapScope::kOld && scope_ != HeapScope::kYoung) return;
  for (size_t i = 0; i < after_.count; ++i) {
    const HeapSpace& space = after_.spaces[i];
    bool old = space.kind != Kind::kEden && space.kind != Kind::kSurvivor && space.kind != Kind::kFree;
    if (old == (scope_ == HeapScope::kOld)) {
      g_gate.close_committed(space.bottom, space.end);
    } else {
      g_gate.open_range(space.bottom, space.end);
    }
  }
}

void HeapTracker::started() {
  uint32_t id = log_->claim();
  if (id != 0) {
    GcInfo& gc = log_->row(id);
    gc.start_ns = monotonic_ns();
    cause_.text(gc.cause, sizeof(gc.cause));
    gc.ready.store(true, std::memory_order_release);
    g_gc_id.store(id, std::memory_order_release);
  }
  read(&before_);
#ifdef CLASSACCESS_VERIFY
  g_heap_verify.check(before_.spaces, before_.count);
#endif
}

bool HeapTracker::caused_by(const char* cause) const {
  uint32_t id = g_gc_id.load(std::memory_order_relaxed);
  if (id == 0) return true;
  const GcInfo& gc = log_->row(id);
  return gc.cause[0] == '\0' || strcmp(gc.cause, cause) == 0;
}

const HeapSpace* HeapTracker::before(const HeapSpace& space) const {
  // Spaces come in address order within a kind of collector; regions by index.
  size_t low = 0, high = before_.count;
  for (size_t i = low; i < high; ++i) {
    if (before_.spaces[i].bottom == space.bottom) return &before_.spaces[i];
  }
  return nullptr;
}

bool HeapTracker::objects_moved(bool* full) const {
  bool had_eden = false, eden_stayed = true, survivors = false, eden_used = false, old_shrank = false;
  for (size_t i = 0; i < before_.count; ++i) {
    const HeapSpace& was = before_.spaces[i];
    // Regions keep their index; spaces of Serial and Parallel their order, but from and
    // to swap their bounds.
    const HeapSpace* now = i < after_.count ? &after_.spaces[i] : nullptr;
    if (was.kind == Kind::kEden && was.top > was.bottom) {
      had_eden = true;
      if (now == nullptr || now->kind != Kind::kEden || now->bottom != was.bottom || now->top != was.top) {
        eden_stayed = false;
      }
    }
    if (was.kind == Kind::kOld && now != nullptr && now->bottom == was.bottom &&
        (now->kind == Kind::kOld && now->top < was.top)) {
      old_shrank = true;
    }
  }
  for (size_t i = 0; i < after_.count; ++i) {
    const HeapSpace& now = after_.spaces[i];
    if (now.kind == Kind::kSurvivor && now.top > now.bottom) survivors = true;
    if (now.kind == Kind::kEden && now.top > now.bottom) eden_used = true;
  }
  bool regions = layout_->collector == Collector::kG1;
  // A young collection leaves survivors and an empty eden, and old regions as they
  // were but for what was promoted behind their top. Everything else counts as full:
  // too much walking, never a stale start.
  *full = !survivors || old_shrank || (!regions && eden_used);
  if (regions && had_eden && eden_stayed) return false;  // Remark, Cleanup
  return true;
}

void HeapTracker::rebuild(bool full) {
  for (size_t i = 0; i < after_.count; ++i) {
    const HeapSpace& now = after_.spaces[i];
    if (now.kind == Kind::kArchive) continue;
    if (now.kind == Kind::kHumongousContinues) {
      starts_->clear_range(now.bottom, now.end);
      continue;
    }
    uint64_t from = now.bottom;
    const HeapSpace* was = layout_->collector == Collector::kG1 && i < before_.count ? &before_.spaces[i] : before(now);
    bool kept = !full && now.kind == Kind::kOld && was != nullptr && was->kind == Kind::kOld &&
                was->bottom == now.bottom && now.top >= was->top;
    if (now.kind == Kind::kHumongousStart && was != nullptr && was->kind == now.kind) kept = !full;
    if (kept) from = was->top;
    starts_->clear_range(from, now.end);
    if (now.kind == Kind::kFree || from >= now.top) continue;
    // It may hold a block that is not initialised yet, with the old contents in it.
    if (now.kind == Kind::kEden) continue;
    resolver_->walk(from, now.top, nullptr, nullptr);
    count(g_counters.heap_walks);
  }
}

void HeapTracker::update_marks() {
  if (layout_->collector == Collector::kShenandoah) {
    // Objects move between pauses too: only what was given back is certain.
    for (size_t i = 0; i < after_.count; ++i) {
      if (after_.spaces[i].kind == Kind::kFree) starts_->clear_range(after_.spaces[i].bottom, after_.spaces[i].end);
    }
  } else {
    bool full = false;
    if (objects_moved(&full)) {
      rebuild(full);
    } else {
      for (size_t i = 0; i < after_.count; ++i) {
        if (after_.spaces[i].kind == Kind::kFree) starts_->clear_range(after_.spaces[i].bottom, after_.spaces[i].end);
      }
    }
  }
}

void HeapTracker::finished() {
  read(&after_);
  if (marks_) update_marks();
  apply_scope();
  uint32_t id = g_gc_id.load(std::memory_order_relaxed);
  if (id != 0) log_->row(id).end_ns.store(monotonic_ns(), std::memory_order_release);
  g_gc_finished.store(id, std::memory_order_release);
}

}  // namespace classaccess
