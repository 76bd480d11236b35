// One instruction run every way the executor has, against the same instruction run natively.
//
// A case's operand lies in the heap's pages 3..7. Natively the heap is open; for the
// executor its plain view is closed, so that whatever misses the twin faults.
#pragma once

#include <cstdint>
#include <string>

#include "tests/x86/variants.h"

namespace classaccess::test {

// Where the operand lies.
enum class Place : uint8_t {
  kInside,    // in one page, aligned or not
  kPageEdge,  // across or beside the edge of two pages
  kHole,      // the same, and the upper page is closed in both views: lanes beyond may be masked off
  kHeapEnd,   // across or beside the end of the heap; ordinary memory follows
};

struct DifferentialCounts {
  uint64_t cases = 0;      // that ran natively and were compared
  uint64_t emulated = 0;   // compared
  uint64_t displaced = 0;  // compared; a case of an emulated form counts in both
  uint64_t crossed = 0;    // of them: reached beyond a hole or the end, so the copy had to fault and be run again
  uint64_t masked = 0;     // operand reaches beyond, but those lanes are masked off
  uint64_t not_run = 0;    // draws that do not run natively: misaligned, forbidden register pairs
};

class Differential {
 public:
  explicit Differential(Random* random) : random_(random) {}

  // The heap's contents for a form; before its cases.
  void fill(const Variant& variant);
  void fill_random();

  // An address for an operand of `size` bytes. A locked or exchanging access stays in a
  // cache line: the kernel puts a thread to sleep for each that does not.
  uint64_t pick_address(Place place, unsigned size, bool locked);

  // Sometimes: what CMPXCHG expects is put into memory.
  void make_exchange_succeed(const Case& c);

  // Runs and compares. Empty if all is equal, else what differs. *ran is false if the CPU refuses the case.
  std::string check(const Case& c, Place place, bool* ran);

  // After a form's cases: was anything written outside the operands' surroundings?
  std::string check_rest();

  const DifferentialCounts& counts() const { return counts_; }

 private:
  void restore(uint64_t address);
  std::string memory_difference();
  std::string check_emulated(const Case& c, const MachineState& native, uint64_t address);
  std::string check_displaced(const Case& c, Place place, const MachineState& native, bool reaches, bool may_fault);

  static constexpr uint64_t kMargin = 1024;    // bytes around an operand that are restored and compared
  static constexpr size_t kBytes = 9 * kPage;  // the heap and the page behind
  Random* random_;
  uint8_t before_[kBytes], after_[kBytes];
  uint8_t stack_before_[256], stack_after_[256];
  uint64_t stack_ = 0;         // 0: no stack operand
  size_t low_ = 0, high_ = 0;  // offsets of the surroundings
  DifferentialCounts counts_;
};

}  // namespace classaccess::test
