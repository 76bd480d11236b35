#include "agent/probe/probe_sites.h"

#include <string.h>

#include "agent/base/counters.h"
#include "agent/base/hash.h"
#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/probe/code_patch.h"
#include "agent/probe/probe_thread.h"
#include "agent/probe/stable_bytes.h"

namespace classaccess {

ProbeSites g_probes;

namespace {

constexpr uint8_t kJump = 0xe9;
constexpr size_t kJumpBytes = 5;
// Prefixes that a jump ignores: ES, and REX.W, which must stand next to it.
constexpr uint8_t kPadding[] = {0x26, 0x48};

}  // namespace

const Refusal* refusal_of(LayResult why) {
  static constexpr Refusal kUnfit{g_counters.sites_unfit, g_counters.traps_unfit};
  static constexpr Refusal kImmediate{g_counters.sites_immediate, g_counters.traps_immediate};
  static constexpr Refusal kSuccessor{g_counters.sites_successor, g_counters.traps_successor};
  static constexpr Refusal kNoRoom{g_counters.sites_no_room, g_counters.traps_no_room};
  static constexpr Refusal kBytesChanged{g_counters.sites_bytes_changed, g_counters.traps_bytes_changed};
  switch (why) {
    case LayResult::kLaid:
    case LayResult::kBusy: break;
    case LayResult::kUnfit: return &kUnfit;
    case LayResult::kImmediate: return &kImmediate;
    case LayResult::kSuccessor: return &kSuccessor;
    case LayResult::kNoRoom: return &kNoRoom;
    case LayResult::kBytesChanged: return &kBytesChanged;
  }
  return nullptr;
}

bool ProbeSites::create(const OopRange& oops) {
  oops_ = oops;
  offsets_ = {probe_thread_offset(), oops.watched_offset};
  if (!probes_.create(kProbes) || !sites_.create(kSites)) return false;
  auto* table = reserve_array<std::atomic<uint32_t>>(kSlots);
  if (table == nullptr) return false;
  CodePatch::init();
  table_ = table;
  left_behind.store(0, std::memory_order_relaxed);
  reopen();
  return true;
}

ProbeSites::Site* ProbeSites::find(uint64_t pc) const {
  if (table_ == nullptr) return nullptr;
  uint64_t hash = hash_address(pc);
  for (uint32_t i = 0; i < kSlots; ++i) {
    uint32_t id = table_[(hash + i) % kSlots].load(std::memory_order_acquire);
    if (id == 0) return nullptr;
    const Site& site = sites_.row(id);
    if (site.pc.load(std::memory_order_relaxed) == pc) return const_cast<Site*>(&site);
  }
  return nullptr;
}

// Under the lock.
ProbeSites::Site* ProbeSites::find_or_add(uint64_t pc) {
  if (Site* site = find(pc)) return site;
  uint32_t id = sites_.claim();
  if (id == 0) return nullptr;
  Site* site = &sites_.row(id);
  site->pc.store(pc, std::memory_order_relaxed);
  uint64_t hash = hash_address(pc);
  for (uint32_t i = 0;; ++i) {
    std::atomic<uint32_t>& slot = table_[(hash + i) % kSlots];
    if (slot.load(std::memory_order_relaxed) != 0) continue;
    slot.store(id, std::memory_order_release);
    return site;
  }
}

// HotSpot frees and reuses code without asking: the patch stands only while its bytes do.
bool ProbeSites::in_force(const Site& site) const {
  if (site.probe.load(std::memory_order_acquire) == 0) return false;
  uint8_t now[kMaxJump];
  return safe_copy_prefix(now, site.pc.load(std::memory_order_relaxed), site.patch_length) == site.patch_length &&
         memcmp(now, site.jump, site.patch_length) == 0;
}

bool ProbeSites::trapped_for_us(uint64_t pc) const {
  if (find(pc) == nullptr) return false;
  const uint32_t before = patches_.load(std::memory_order_acquire);
  uint8_t now = 0;
  if (safe_copy_prefix(&now, pc, 1) != 1) return false;
  const uint32_t after = patches_.load(std::memory_order_acquire);
  return now != 0xcc || before != after || (before & 1) != 0;
}

bool ProbeSites::patched(uint64_t pc) const {
  Site* site = find(pc);
  return site != nullptr && in_force(*site);
}

bool ProbeSites::may_be_oop(const Instruction& in) const {
  bool immediate = in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k1Byte &&
                   (in.opcode == 0xc7 || in.opcode == 0x81 || in.opcode == 0xf7) && !in.operand16;
  if (!immediate) return false;
  uint64_t oop = oops_.narrow_base + (static_cast<uint64_t>(static_cast<uint32_t>(in.immediate)) << oops_.narrow_shift);
  // -1 is no oop: no object starts in the heap's last 8 bytes.
  return oop >= oops_.heap_low && oop + 16 <= oops_.heap_high;
}

// A library's text is not writable.
bool ProbeSites::write(const Site& site, const uint8_t* from, const uint8_t* to) {
  const uint64_t pc = site.pc.load(std::memory_order_relaxed);
  patches_.fetch_add(1, std::memory_order_seq_cst);
  bool done = site.request.kind == ProbeKind::kLibrary ? CodePatch::write_text(pc, from, to, site.patch_length)
                                                       : CodePatch::write(pc, from, to, site.patch_length);
  patches_.fetch_add(1, std::memory_order_seq_cst);
  return done;
}

// What the displacement must look like: its last bytes are those behind the site.
LayResult ProbeSites::shape_of(const Site& site, size_t jump_length, JumpShape* shape) const {
  const Instruction& in = *site.request.instruction;
  const uint64_t pc = site.pc.load(std::memory_order_relaxed);
  shape->low_byte_small = true;
  if (in.length >= jump_length) return LayResult::kLaid;
  size_t shared = jump_length - in.length;
  // At least one byte of the displacement is ours.
  if (shared > 3) return LayResult::kNoRoom;
  uint8_t behind[kMaxJump + 15] = {};
  size_t got = safe_copy_prefix(behind, pc + in.length, sizeof(behind));
  if (got < shared) return LayResult::kSuccessor;
  // Instructions behind the site; those that are sites themselves have our bytes.
  for (size_t at = 0; at < shared;) {
    Site* next = find(pc + in.length + at);
    if (next != nullptr && in_force(*next)) {
      at += next->patch_length;
      if (next->request.instruction->length > next->patch_length && at < shared) return LayResult::kSuccessor;
      continue;
    }
    size_t length = 0;
    bool stable = bytes_are_stable(behind + at, got - at, shared - at, site.request.patched, &length);
    // Libraries and the interpreter are not rewritten.
    if (site.request.kind == ProbeKind::kCompiled ? !stable : length == 0) return LayResult::kSuccessor;
    at += length;
  }
  for (size_t i = 0; i < shared; ++i) {
    unsigned shift = static_cast<unsigned>(8 * (4 - shared + i));
    shape->fixed_mask |= 0xffu << shift;
    shape->fixed |= static_cast<uint32_t>(behind[i]) << shift;
  }
  return LayResult::kLaid;
}

// A probe that served the site before and does so again: a program that is patched and
// taken back many times must not use up its windows.
uint32_t ProbeSites::older_probe(const Site& site, const JumpShape& shape, uint64_t jump_end) const {
  const Instruction& in = *site.request.instruction;
  constexpr int kMaxOlder = 16;
  uint32_t id = site.last_probe;
  for (int i = 0; i < kMaxOlder && id != 0; ++i, id = probes_.row(id).older) {
    const Probe& probe = probes_.row(id);
    uint32_t displacement = static_cast<uint32_t>(probe.entry - jump_end);
    if ((displacement & shape.fixed_mask) == shape.fixed && probe.kind == site.request.kind &&
        probe.owner == site.request.owner && probe.site_id == site.request.site_id &&
        probe.instruction->length == in.length && memcmp(probe.instruction->bytes, in.bytes, in.length) == 0) {
      return id;
    }
  }
  return 0;
}

size_t ProbeSites::write_code(const Site& site, uint64_t at, uint32_t id, uint8_t* to, ProbeShape* shape) const {
  return write_probe(*site.request.instruction, site.pc.load(std::memory_order_relaxed), at, id, site.request.kind,
                     offsets_, to, shape);
}

// Room for `bytes` of code, and where a jump that ends at jump_end enters it. Where few
// displacements will do, a jump to the code is all that lies there.
uint64_t ProbeSites::place(CodeRoom* room, const JumpShape& wanted, uint64_t jump_end, uint32_t bytes,
                           uint64_t* entry) {
  constexpr uint32_t kThreeBytes = 0xffffff00u;
  const bool scarce = (wanted.fixed_mask & kThreeBytes) == kThreeBytes;
  for (bool small : {true, false}) {
    JumpShape shape = wanted;
    shape.low_byte_small = small;
    *entry = scarce ? 0 : room->allocate(jump_end, shape, bytes);
    if (*entry != 0) return *entry;
  }
  JumpShape shape = wanted;
  shape.low_byte_small = false;
  *entry = room->allocate(jump_end, shape, kJumpBytes);
  if (*entry == 0) return 0;
  const uint64_t behind = *entry + kJumpBytes;
  const uint64_t at = room->allocate(behind, JumpShape{}, bytes);
  const auto displacement = static_cast<uint32_t>(at - behind);
  uint8_t* jump = room->write_at(*entry);
  jump[0] = kJump;
  memcpy(jump + 1, &displacement, 4);
  return at;
}

uint32_t ProbeSites::make_probe(const Site& site, const JumpShape& wanted, uint64_t jump_end, LayResult* why) {
  const Instruction& in = *site.request.instruction;
  const uint64_t pc = site.pc.load(std::memory_order_relaxed);
  uint8_t code[kMaxProbeCode];
  ProbeShape unused;
  *why = LayResult::kUnfit;
  // Its length does not depend on where it runs.
  size_t bytes = write_code(site, pc, 1, code, &unused);
  if (bytes == 0) return 0;
  *why = LayResult::kNoRoom;
  CodeRoom& room = room_for(site);
  uint64_t entry = 0;
  const uint64_t at = place(&room, wanted, jump_end, static_cast<uint32_t>(bytes), &entry);
  uint32_t id = at != 0 ? probes_.claim() : 0;
  if (id == 0) return 0;
  Probe& probe = probes_.row(id);
  if (write_code(site, at, id, code, &probe.shape) != bytes) return 0;
  memcpy(room.write_at(at), code, bytes);
  probe.pc = pc;
  probe.start = at;
  probe.entry = entry;
  probe.kind = site.request.kind;
  probe.instruction = &in;
  probe.operand = probe_operand(in);
  probe.owner = site.request.owner;
  probe.site_id = site.request.site_id;
  probe.older = site.last_probe;
  room.set_id(at, static_cast<uint32_t>(bytes), id);
  return id;
}

// Whether the site may have been a jump to a patching stub of C1's: an access to a field whose
// class was not loaded, with a displacement of 4 bytes to be filled in. A second thread that
// finishes in the stub late asks only whether the site begins with a jump (E9 or EB); if so it
// adds the field's offset to the displacement once more (Runtime1::patch_code, 17 to 25).
bool ProbeSites::may_be_patched_late(const Site& site) {
  const Instruction& in = *site.request.instruction;
  return site.request.kind == ProbeKind::kCompiled && in.has_modrm && in.modrm >> 6 == 2;
}

// A probe for the site and its jump: the plain one, else with one or two prefixes.
uint32_t ProbeSites::find_probe(Site* site, LayResult* why) {
  const uint64_t pc = site->pc.load(std::memory_order_relaxed);
  const size_t least = may_be_patched_late(*site) ? 1 : 0;
  for (size_t padding = least; padding <= kMaxPadding; ++padding) {
    const size_t length = kJumpBytes + padding;
    JumpShape shape;
    LayResult result = shape_of(*site, length, &shape);
    uint32_t id = 0;
    if (result == LayResult::kLaid) {
      id = older_probe(*site, shape, pc + length);
      if (id == 0) {
        id = make_probe(*site, shape, pc + length, &result);
        if (id != 0) site->last_probe = id;
      }
    }
    if (id != 0) {
      memcpy(site->jump, kPadding + kMaxPadding - padding, padding);
      site->jump[padding] = kJump;
      uint32_t displacement = static_cast<uint32_t>(probes_.row(id).entry - (pc + length));
      memcpy(site->jump + padding + 1, &displacement, 4);
      site->jump_length = static_cast<uint8_t>(length);
      return id;
    }
    // The reason of the shortest jump.
    if (padding == least) *why = result;
    if (*why != LayResult::kNoRoom) return 0;
  }
  return 0;
}

// The jumps before it are taken back already.
LayResult ProbeSites::lay_site(Site* site) {
  const Instruction& in = *site->request.instruction;
  const uint64_t pc = site->pc.load(std::memory_order_relaxed);
  uint8_t now[15];
  if (safe_copy_prefix(now, pc, in.length) != in.length || memcmp(now, in.bytes, in.length) != 0) {
    return LayResult::kBytesChanged;
  }
  auto is_reserved = reserved.load(std::memory_order_acquire);
  if (is_reserved != nullptr && is_reserved(pc, pc + kMaxJump)) return LayResult::kBytesChanged;
  LayResult result = LayResult::kLaid;
  uint32_t id = find_probe(site, &result);
  if (id == 0) return result;
  site->patch_length = in.length < site->jump_length ? in.length : site->jump_length;
  memcpy(site->original, in.bytes, site->patch_length);
  // Known before the jump is there: a thread may meet it at once.
  site->probe.store(id, std::memory_order_release);
  if (!write(*site, site->original, site->jump)) {
    site->probe.store(0, std::memory_order_release);
    return LayResult::kBytesChanged;
  }
  return LayResult::kLaid;
}

// Those that take_back_dependents took, the nearest first.
void ProbeSites::lay_again(Site* const* taken, int count) {
  for (int i = count - 1; i >= 0; --i) {
    // No core may still hold the neighbour's old bytes.
    CodePatch::serialise_cores();
    LayResult result = lay_site(taken[i]);
    classaccess::count(result == LayResult::kLaid ? g_counters.probes_relaid : refusal_of(result)->sites);
  }
}

LayResult ProbeSites::lay(const Request& request) {
  const Instruction& in = *request.instruction;
  LayResult result = LayResult::kLaid;
  if (!can_probe(in)) result = LayResult::kUnfit;
  if (result == LayResult::kLaid && request.kind != ProbeKind::kLibrary && may_be_oop(in))
    result = LayResult::kImmediate;
  if (result != LayResult::kLaid) {
    count(refusal_of(result)->sites);
    return result;
  }
  if (lock_.test_and_set(std::memory_order_acquire)) return LayResult::kBusy;
  // Asked under the lock: close() misses no jump that is laid meanwhile.
  if (closed()) {
    lock_.clear(std::memory_order_release);
    return LayResult::kBusy;
  }
  Site* site = find_or_add(request.pc);
  if (site == nullptr) {
    result = LayResult::kNoRoom;
  } else if (!in_force(*site)) {
    site->request = request;
    site->probe.store(0, std::memory_order_relaxed);
    Site* taken[kMaxDependents];
    int count = 0;
    bool ready = take_back_dependents(site, taken, &count);
    result = ready ? lay_site(site) : LayResult::kSuccessor;
    lay_again(taken, count);
  }
  lock_.clear(std::memory_order_release);
  if (result == LayResult::kLaid) {
    count(g_counters.probes_laid);
  } else {
    count(refusal_of(result)->sites);
  }
  return result;
}

}  // namespace classaccess
