// The pages that an instruction touches, in the order of the model.
//
//  - A string move or compare: the source, then the destination.
//  - An access over a page's end: the lower page, then the higher one.
//  - REP: each page once, when an iteration reaches it first; of one iteration the source's
//    before the destination's. Downwards (DF) the pages come in falling order.
//  - Anything else: the bytes touched, in the order of its lanes.
// Context: signal handler and tests; pure.
#pragma once

#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

struct PageTouch {
  uint64_t address = 0;  // the first byte touched there; of a string moving down, the last
  Op op = Op::kLoad;
};

// Hands out the pages one by one, without a list: a REP may reach any number.
class TouchedPages {
 public:
  // `before` and `after`: the registers before the instruction was performed and after it. A string
  // instruction that was stopped on its way has touched what it has done. `page_bytes` is a power of two.
  TouchedPages(const Instruction& instruction, const CpuState& before, const CpuState& after, uint64_t page_bytes);
  // `bytes` bytes at `address`.
  TouchedPages(uint64_t address, uint64_t bytes, Op op, uint64_t page_bytes);

  // False: that were all.
  bool next(PageTouch* touch);

 private:
  // Elements of `step` bytes, `count` of them, from `start` up or down.
  struct Stream {
    uint64_t start = 0, step = 0, count = 0;
    Op op = Op::kLoad;
    bool down = false;
    uint64_t pages = 0;  // how many have been handed out
    // The next page's touch and the iteration that reaches it. False: no more.
    bool peek(uint64_t page_bytes, uint64_t* iteration, PageTouch* touch) const;
  };
  static constexpr uint32_t kMaxRuns = 32;  // TouchedRuns::kMax

  uint64_t page_bytes_;
  bool string_ = false;
  Stream streams_[2];
  uint32_t run_ = 0, run_count_ = 0;
  struct Run {
    uint64_t address, bytes;
  } runs_[kMaxRuns];
  Op op_ = Op::kLoad;
  uint64_t at_ = 0;  // in the present run
};

}  // namespace classaccess
