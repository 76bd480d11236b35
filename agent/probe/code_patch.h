// Replaces a few bytes of code that other threads may be running.
//
// Bytes inside one aligned block of 16 are replaced by one compare-and-swap of 8 bytes: the
// CPU fetches such a block at once, and whoever writes other bytes of the eight (HotSpot
// patches calls) is not overwritten. Other bytes by the int3 protocol: first byte 0xCC,
// every core serialised, the rest, serialised, the first byte. A thread that runs into the
// int3 gets SIGTRAP; its handler sends it back to `pc` (ProbeSites::trapped_for_us).
//
// HotSpot frees code and puts other code there without asking. In one cache line each step is
// a compare-and-swap of all the bytes, so it never hits what came after. Over the border of
// two lines the steps are blind: only where the code stays (a thread that waits for us is
// inside it, or no code is installed: a safepoint).
// Source: Intel SDM vol. 3, 9.1.3 (cross-modifying code) and 9.1.1 (atomic accesses).
// Context: signal handler and any thread. One patcher at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace classaccess {

class CodePatch {
 public:
  static constexpr size_t kMaxBytes = 7;

  // Registers for membarrier(SYNC_CORE). Without it bytes that need the int3 protocol are
  // refused. Not in a signal handler.
  static void init();

  // Writes `to` over `from`, `count` bytes (1 to 7) at pc. False, with nothing changed, if
  // other bytes are there or the way is refused. Also false: other code came meanwhile.
  static bool write(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count);

  // Whether write() touches nothing but what it has compared (in one cache line).
  static bool is_exact(uint64_t pc, size_t count);

  // The same for the text of a library, which is not writable and stays so: through
  // /proc/self/mem, byte for byte by the int3 protocol (what the kernel copies at once is
  // not said). Calls no function of any library: it may be the one that is patched.
  static bool write_text(uint64_t pc, const uint8_t* from, const uint8_t* to, size_t count);

  // Whether text can be written so. Not in a signal handler: tries it on a byte of our own.
  static bool can_write_text();
  static bool can_serialise();

  // Every core that runs a thread of this process serialises before this returns. False:
  // the kernel cannot.
  static bool serialise_cores();
};

}  // namespace classaccess
