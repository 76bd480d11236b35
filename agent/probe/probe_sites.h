// Which instructions are probed: lays probes, takes them back, finds them by address.
//
// A site's first bytes become a jump to its probe. Most sites are shorter than the jump,
// whose last bytes are then those of the instructions behind it (instruction punning:
// LiteInst, PLDI 2017; E9Patch, PLDI 2020). Such shared bytes must not change while the
// jump stands: they belong to no immediate, call or jump displacement that HotSpot may
// rewrite. If no free address has the displacement that they make, a prefix before the jump
// shifts it to other bytes; so it does where HotSpot would take the jump for its own. A site
// whose bytes are shared is patched only after the jumps before it are taken back; they are
// laid again with its new bytes.
//
// Context: lay, take_back: signal handler, under a lock that is tried, never waited for.
// The rest: any handler, no lock. Probes are never freed: a thread may be inside.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/base/append_table.h"
#include "agent/probe/code_room.h"
#include "agent/probe/probe_code.h"
#include "agent/x86/instruction.h"

namespace classaccess {

// A row per probe; constant once CodeRoom knows its code by the id.
struct alignas(64) Probe {
  ProbeOperand operand;
  ProbeKind kind = ProbeKind::kCompiled;
  ProbeShape shape;
  uint64_t pc = 0;     // of the site
  uint64_t start = 0;  // of the probe's code
  uint64_t entry = 0;  // where the site's jump goes: `start`, or a jump to it
  const Instruction* instruction = nullptr;
  void* owner = nullptr;  // whose: fault/instruction_cache's row
  uint32_t site_id = 0;   // SiteTable; 0 in the interpreter
  uint32_t older = 0;     // probe of the same site: laid again when it fits
  // Faults at its access that were not the heap's.
  std::atomic<uint32_t> outside{0};
};

enum class LayResult : uint8_t {
  kLaid,
  kBusy,          // another thread is patching: try again later; or closed
  kUnfit,         // the instruction cannot run in a probe
  kImmediate,     // has an immediate that may be an oop
  kSuccessor,     // the bytes behind it may change
  kNoRoom,        // no free address with the displacement that is needed
  kBytesChanged,  // the code is not what was decoded any more, or patching is refused
};

// Counters of a reason not to probe: of its sites, and of the traps there.
struct Refusal {
  std::atomic<uint64_t>& sites;
  std::atomic<uint64_t>& traps;
};
// Null for kLaid and kBusy.
const Refusal* refusal_of(LayResult why);

// The heap, as far as probes ask: what an instruction's immediate may not be (an oop that
// the collector rewrites), and where the window of a library's probes is told.
struct OopRange {
  uint64_t heap_low = 0, heap_high = 0;
  uint64_t narrow_base = 0;
  uint32_t narrow_shift = 0;
  int32_t watched_offset = 0;  // of t_watched from the FS base
};

class ProbeSites {
 public:
  // After room().create (and library_room().create: without it no library is probed). False:
  // no memory. Again for another recording, when no thread is inside a probe.
  bool create(const OopRange& oops);
  CodeRoom& room() { return room_; }
  CodeRoom& library_room() { return library_room_; }
  bool enabled() const { return table_ != nullptr; }

  struct Request {
    uint64_t pc = 0;
    const Instruction* instruction = nullptr;  // lives for ever
    void* owner = nullptr;
    uint32_t site_id = 0;
    ProbeKind kind = ProbeKind::kCompiled;
    bool patched = true;  // the code may have patching stubs: not C2's
  };
  LayResult lay(const Request& request);

  // Restores the site's bytes (and takes back the jumps that share them). kLaid: done, kBusy,
  // or kBytesChanged: it could not be written.
  LayResult take_back(uint64_t pc);
  // Every site. Waits for the lock. Returns how many could not be restored.
  uint32_t take_back_all();
  // The same for good: the recording is over and the program goes on. No site is laid from
  // now on. True for the caller who did it; again, later, for what was left behind.
  // kStandstill: no code is freed and reused meanwhile; waits for the lock. kRunning (signal
  // handler): what cannot be restored exactly then (CodePatch::is_exact) is left behind; false,
  // with nothing done, if the lock is taken: its holder may be what the handler interrupted.
  enum class Program : uint8_t { kStandstill, kRunning };
  bool close(Program program);
  // The process is about to end: the jumps stay, close() does nothing.
  void leave() { closed_.store(true, std::memory_order_relaxed); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  // Sites are laid again from now on. Any thread.
  void reopen() { closed_.store(false, std::memory_order_release); }
  // Sites with a jump of ours at this moment.
  uint32_t in_force_now() const;
  // What lies where a jump of ours ever was: the jump; the bytes that it replaced; others,
  // HotSpot's use of the place since.
  struct Remains {
    uint32_t patched = 0, original = 0, other = 0;
  };
  Remains remains() const;

  // The probe whose code holds `pc`, or null.
  Probe* at(uint64_t pc) {
    uint32_t id = room_.id_at(pc);
    if (id == 0) id = library_room_.id_at(pc);
    return id != 0 ? &probes_.row(id) : nullptr;
  }
  Probe& row(uint32_t id) { return probes_.row(id); }
  // A row that is no probe: records of `words` words with the head that this returns are marks. 0: no more rows.
  uint64_t add_mark(uint8_t words) {
    const uint64_t id = probes_.claim();
    return id != 0 ? id | uint64_t{words} << kRecordWordsShift : 0;
  }

  // Where null leads as a compressed oop with a base: HotSpot keeps that page closed.
  bool compressed_null(uint64_t address) const {
    return oops_.narrow_base != 0 && oops_.narrow_base < oops_.heap_low && address - oops_.narrow_base < 4096;
  }

  // Round fork(): a child must not be born with a patch half written, whose writer it has not.
  void hold() {
    while (lock_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void release() { lock_.clear(std::memory_order_release); }

  // True if our jump, or the int3 of a patch under way, is or was at `pc`.
  bool knows(uint64_t pc) const { return find(pc) != nullptr; }
  // True if the int3 that a thread met at `pc` was that of a patch under way: it may go back
  // there. False: it is somebody else's.
  bool trapped_for_us(uint64_t pc) const;
  // True if our jump is there now.
  bool patched(uint64_t pc) const;

  // Whether somebody else has [low, high) patched, or is about to (calls/: entries of timed functions): no jump is
  // laid into it. Set once; null: nobody.
  std::atomic<bool (*)(uint64_t low, uint64_t high)> reserved{nullptr};
  // What lies under the jumps that have bytes in [at, at + count): put in their place in the copy `bytes`.
  void put_originals_back(uint64_t at, uint8_t* bytes, uint64_t count) const;

  // By close(): those that could not be restored (yet).
  std::atomic<uint32_t> left_behind{0};

 private:
  static constexpr uint32_t kSites = 1u << 18;
  static constexpr uint32_t kSlots = 1u << 20;
  static constexpr uint32_t kProbes = 1u << 19;
  static_assert(kProbes <= kProbeIdMask);
  static constexpr int kMaxPadding = 2;
  static constexpr int kMaxJump = 5 + kMaxPadding;

  struct Site {
    std::atomic<uint64_t> pc{0};
    std::atomic<uint32_t> probe{0};  // in force; 0: not patched
    uint32_t last_probe = 0;         // made last; Probe::older leads to the others
    uint8_t patch_length = 0;        // bytes of its own that are written, 2 to kMaxJump
    uint8_t jump_length = 0;         // 5 and its prefixes; the last bytes may be its neighbours'
    uint8_t original[kMaxJump] = {};
    uint8_t jump[kMaxJump] = {};
    Request request;
  };
  static constexpr int kMaxDependents = 64;

  Site* find(uint64_t pc) const;
  Site* find_or_add(uint64_t pc);
  bool in_force(const Site& site) const;
  uint32_t restore_all();
  LayResult lay_site(Site* site);
  void lay_again(Site* const* taken, int count);
  static bool may_be_patched_late(const Site& site);
  uint32_t find_probe(Site* site, LayResult* why);
  static uint64_t place(CodeRoom* room, const JumpShape& wanted, uint64_t jump_end, uint32_t bytes, uint64_t* entry);
  uint32_t make_probe(const Site& site, const JumpShape& shape, uint64_t jump_end, LayResult* why);
  uint32_t older_probe(const Site& site, const JumpShape& shape, uint64_t jump_end) const;
  LayResult shape_of(const Site& site, size_t jump_length, JumpShape* shape) const;
  int dependents_of(uint64_t pc, int length, Site** out) const;
  bool restore(Site* site);
  bool take_back_dependents(Site* site, Site** taken, int* count);
  bool may_be_oop(const Instruction& instruction) const;
  bool write(const Site& site, const uint8_t* from, const uint8_t* to);
  size_t write_code(const Site& site, uint64_t at, uint32_t id, uint8_t* to, ProbeShape* shape) const;

  CodeRoom& room_for(const Site& site) { return site.request.kind == ProbeKind::kLibrary ? library_room_ : room_; }

  CodeRoom room_;
  CodeRoom library_room_;
  AppendTable<Probe> probes_;
  AppendTable<Site> sites_;
  std::atomic<uint32_t>* table_ = nullptr;  // by pc
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  std::atomic<uint32_t> patches_{0};  // odd while one is under way
  std::atomic<bool> closed_{false};
  bool exact_only_ = false;  // under the lock: Program::kRunning
  OopRange oops_;
  ThreadOffsets offsets_;
};

extern ProbeSites g_probes;

}  // namespace classaccess
