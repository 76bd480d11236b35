#include "agent/jvmti/take_back_rounds.h"

#include <stdlib.h>
#include <string.h>

#include <vector>

#include "agent/base/clock.h"
#include "agent/base/raw_log.h"
#include "agent/base/safe_load.h"
#include "agent/fault/library_texts.h"
#include "agent/probe/probe_sites.h"

namespace classaccess {

TakeBackCounters g_take_back;

namespace {

constexpr uint32_t kEnough = 300;
constexpr uint64_t kLongestWait = 1000000000;

// What can be read of [low, high); pages that cannot are zeros.
std::vector<uint8_t> bytes_of(uint64_t low, uint64_t high) {
  constexpr uint64_t kPage = 4096;
  std::vector<uint8_t> bytes(high - low + kPage);
  for (uint64_t at = 0; at < high - low; at += kPage) (void)safe_copy_prefix(bytes.data() + at, low + at, kPage);
  return bytes;
}

// Where the jump at `bytes`, which lies at `pc`, goes; 0: it is none.
uint64_t jump_target(const uint8_t* bytes, uint64_t pc) {
  if (bytes[0] != 0xe9) return 0;
  int32_t displacement = 0;
  memcpy(&displacement, bytes + 1, 4);
  return pc + 5 + static_cast<uint64_t>(static_cast<int64_t>(displacement));
}

// The probe that begins at `target`, or behind the jump that is all that lies there.
const Probe* probe_entered_at(uint64_t target, CodeRoom& room) {
  if (target == 0 || !room.contains(target)) return nullptr;
  const Probe* probe = g_probes.at(target);
  uint8_t bytes[5];
  if (probe == nullptr && safe_copy_prefix(bytes, target, sizeof(bytes)) == sizeof(bytes)) {
    probe = g_probes.at(jump_target(bytes, target));
  }
  return probe != nullptr && probe->entry == target ? probe : nullptr;
}

// Jumps from anywhere in [low, high) to a probe. No prefix matters: the opcode and what follows it are found where
// they are.
uint64_t jumps_from(uint64_t low, uint64_t high, bool library) {
  constexpr uint64_t kMaxPrefixes = 2;
  const std::vector<uint8_t> bytes = bytes_of(low, high);
  CodeRoom& room = library ? g_probes.library_room() : g_probes.room();
  uint64_t count = 0;
  for (uint64_t at = 0; at + 5 <= high - low; ++at) {
    const Probe* probe = probe_entered_at(jump_target(bytes.data() + at, low + at), room);
    if (probe == nullptr) continue;
    // In so many bytes of libraries some look like a jump to a probe: only that of the probe's own site counts.
    if (!library || low + at - probe->pc <= kMaxPrefixes) ++count;
  }
  return count;
}

uint64_t jumps_to_probes(const VmLayout& layout) { return jumps_from(layout.code_low, layout.code_high, false); }

uint64_t library_jumps_to_probes() {
  uint64_t count = 0;
  g_library_texts.for_each([&](uint64_t low, uint64_t high) { count += jumps_from(low, high, true); });
  return count;
}

}  // namespace

void take_back_at_tick(const VmLayout& layout) {
  static const char* const given = getenv("CLASSACCESS_TAKE_BACK_ROUNDS");
  static const uint64_t rounds = given != nullptr ? strtoull(given, nullptr, 10) : 0;
  static uint64_t last = monotonic_ns();
  if (g_take_back.rounds >= rounds || !g_probes.enabled()) return;
  const bool late = monotonic_ns() - last > kLongestWait;
  if (g_probes.in_force_now() < (late ? 1 : kEnough)) return;
  const uint64_t found = jumps_to_probes(layout), in_libraries = library_jumps_to_probes();
  if (!g_probes.close(ProbeSites::Program::kStandstill)) return;
  const uint64_t left = jumps_to_probes(layout) + library_jumps_to_probes();
  const ProbeSites::Remains remains = g_probes.remains();
  g_probes.reopen();
  g_take_back.jumps_found += found + in_libraries;
  g_take_back.jumps_left += left;
  g_take_back.sites_restored += remains.original;
  g_take_back.sites_reused += remains.other;
  g_take_back.not_restored += remains.patched;
  ++g_take_back.rounds;
  last = monotonic_ns();
  raw_log(LogLevel::kInfo,
          "round %lu: %lu jumps and %lu in libraries, then %lu; sites: %u as before, %u reused, %u patched",
          g_take_back.rounds, found, in_libraries, left, remains.original, remains.other, remains.patched);
}

}  // namespace classaccess
