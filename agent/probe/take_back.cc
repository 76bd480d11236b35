// Taking probes back: of one site, of those whose jumps have its bytes, of all.
#include <string.h>

#include "agent/base/counters.h"
#include "agent/base/safe_load.h"
#include "agent/probe/code_patch.h"
#include "agent/probe/probe_sites.h"

namespace classaccess {

// The sites before `pc` whose jump has bytes in [pc, pc + length).
int ProbeSites::dependents_of(uint64_t pc, int length, Site** out) const {
  int count = 0;
  for (uint64_t before = 1; before < kMaxJump; ++before) {
    Site* site = find(pc - before);
    if (site == nullptr || !in_force(*site)) continue;
    uint64_t at = pc - before;
    if (at + site->patch_length < pc + static_cast<uint64_t>(length) && at + site->jump_length > pc)
      out[count++] = site;
  }
  return count;
}

bool ProbeSites::restore(Site* site) {
  const bool may_go = site->request.kind == ProbeKind::kCompiled;
  if (exact_only_ && may_go && !CodePatch::is_exact(site->pc.load(std::memory_order_relaxed), site->patch_length)) {
    return false;
  }
  if (!write(*site, site->jump, site->original)) return !in_force(*site);
  site->probe.store(0, std::memory_order_release);
  count(g_counters.probes_taken_back);
  return true;
}

// Takes back the jumps that need this site's bytes, the farthest first; appends them to
// `taken`, so that laying from the last to the first lays the nearest first.
bool ProbeSites::take_back_dependents(Site* site, Site** taken, int* count) {
  Site* direct[kMaxJump];
  const int length = site->request.instruction->length < kMaxJump ? site->request.instruction->length : kMaxJump;
  int found = dependents_of(site->pc.load(std::memory_order_relaxed), length, direct);
  if (found != 0 && !CodePatch::can_serialise()) return false;
  for (int i = 0; i < found; ++i) {
    if (*count >= kMaxDependents) return false;
    if (!in_force(*direct[i])) continue;  // by way of another one
    if (!take_back_dependents(direct[i], taken, count) || !restore(direct[i])) return false;
    // Nobody may run the old jump's head with its neighbour's new bytes.
    CodePatch::serialise_cores();
    taken[(*count)++] = direct[i];
  }
  return true;
}

LayResult ProbeSites::take_back(uint64_t pc) {
  Site* site = find(pc);
  if (site == nullptr) return LayResult::kLaid;
  if (lock_.test_and_set(std::memory_order_acquire)) return LayResult::kBusy;
  bool done = true;
  if (in_force(*site)) {
    Site* taken[kMaxDependents];
    int count = 0;
    done = take_back_dependents(site, taken, &count) && restore(site);
    lay_again(taken, count);
  }
  lock_.clear(std::memory_order_release);
  return done ? LayResult::kLaid : LayResult::kBytesChanged;
}

void ProbeSites::put_originals_back(uint64_t at, uint8_t* bytes, uint64_t count) const {
  if (!enabled()) return;
  for (uint64_t pc = at - kMaxJump; pc < at + count; ++pc) {
    const Site* site = find(pc);
    if (site == nullptr || !in_force(*site)) continue;
    for (uint64_t i = 0; i < site->patch_length; ++i) {
      if (pc + i - at < count) bytes[pc + i - at] = site->original[i];
    }
  }
}

// Under the lock.
uint32_t ProbeSites::restore_all() {
  uint32_t left = 0;
  for (uint32_t id = 1; id < sites_.end(); ++id) {
    Site* site = &sites_.row(id);
    if (!in_force(*site)) continue;
    Site* taken[kMaxDependents];
    int count = 0;
    if (!take_back_dependents(site, taken, &count) || !restore(site)) ++left;
  }
  return left;
}

uint32_t ProbeSites::take_back_all() {
  if (table_ == nullptr) return 0;
  while (lock_.test_and_set(std::memory_order_acquire)) {
  }
  uint32_t left = restore_all();
  lock_.clear(std::memory_order_release);
  return left;
}

bool ProbeSites::close(Program program) {
  const bool running = program == Program::kRunning;
  auto done = [&] { return closed() && (running || left_behind.load(std::memory_order_relaxed) == 0); };
  if (table_ == nullptr || done()) return false;
  while (lock_.test_and_set(std::memory_order_acquire)) {
    if (running) return false;
  }
  const bool ours = !done();
  if (ours) {
    closed_.store(true, std::memory_order_relaxed);
    exact_only_ = running;
    left_behind.store(restore_all(), std::memory_order_relaxed);
    exact_only_ = false;
  }
  lock_.clear(std::memory_order_release);
  return ours;
}

ProbeSites::Remains ProbeSites::remains() const {
  Remains remains;
  if (table_ == nullptr) return remains;
  for (uint32_t id = 1; id < sites_.end(); ++id) {
    const Site& site = sites_.row(id);
    uint8_t now[kMaxJump];
    if (site.patch_length == 0) continue;
    if (safe_copy_prefix(now, site.pc.load(std::memory_order_relaxed), site.patch_length) != site.patch_length) {
      ++remains.other;
    } else if (memcmp(now, site.jump, site.patch_length) == 0) {
      ++remains.patched;
    } else {
      ++(memcmp(now, site.original, site.patch_length) == 0 ? remains.original : remains.other);
    }
  }
  return remains;
}

uint32_t ProbeSites::in_force_now() const {
  uint32_t count = 0;
  if (table_ == nullptr) return 0;
  for (uint32_t id = 1; id < sites_.end(); ++id) count += in_force(sites_.row(id)) ? 1 : 0;
  return count;
}

}  // namespace classaccess
