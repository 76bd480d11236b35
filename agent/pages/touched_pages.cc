#include "agent/pages/touched_pages.h"

#include "agent/x86/operand.h"

namespace classaccess {
namespace {

constexpr unsigned kRcx = 1, kRsi = 6, kRdi = 7;
constexpr uint64_t kDirection = 0x400;

}  // namespace

TouchedPages::TouchedPages(const Instruction& in, const CpuState& before, const CpuState& after, uint64_t page_bytes)
    : page_bytes_(page_bytes) {
  op_ = in.op;
  if (in.execute != Execute::kString) {
    TouchedRuns touched;
    static_assert(TouchedRuns::kMax <= kMaxRuns);
    find_touched(in, before, &touched);
    for (uint32_t i = 0; i < touched.count; ++i) {
      if (touched.runs[i].size != 0) runs_[run_count_++] = {touched.runs[i].address, touched.runs[i].size};
    }
    return;
  }
  string_ = true;
  uint64_t mask = in.address32 ? 0xffffffffu : ~0ull;
  uint64_t count = 0;
  if (in.rep || in.repne) {
    count = ((before.gpr[kRcx] & mask) - (after.gpr[kRcx] & mask)) & mask;
  } else if (after.rip != before.rip) {
    count = 1;
  }
  // As in x86/string_ops: which pointers an opcode uses.
  unsigned kind = in.opcode & 0xfe;
  bool source = kind == 0xa4 || kind == 0xa6 || kind == 0xac;
  bool destination = kind != 0xac;
  bool compares = kind == 0xa6 || kind == 0xae;
  bool down = (before.rflags & kDirection) != 0;
  uint64_t base = in.segment == 0x64 ? before.fs_base : 0;
  if (source) streams_[0] = {(before.gpr[kRsi] & mask) + base, in.operand_bytes, count, Op::kLoad, down};
  if (destination) {
    streams_[1] = {before.gpr[kRdi] & mask, in.operand_bytes, count, compares ? Op::kLoad : Op::kStore, down};
  }
}

TouchedPages::TouchedPages(uint64_t address, uint64_t bytes, Op op, uint64_t page_bytes) : page_bytes_(page_bytes) {
  op_ = op;
  if (bytes != 0) runs_[run_count_++] = {address, bytes};
}

// The first element may lie on two pages: the lower one comes first, also downwards. After it a new
// page is reached at its near end.
bool TouchedPages::Stream::peek(uint64_t page_bytes, uint64_t* iteration, PageTouch* touch) const {
  if (count == 0) return false;
  const uint64_t page_mask = ~(page_bytes - 1);
  const uint64_t low_page = start & page_mask;
  const uint64_t high_page = (start + step - 1) & page_mask;
  const uint64_t in_first = low_page == high_page ? 1 : 2;
  touch->op = op;
  *iteration = 0;
  if (pages == 0) {
    touch->address = start;
    return true;
  }
  if (pages < in_first) {
    touch->address = high_page;
    return true;
  }
  if (!down) {
    touch->address = high_page + (pages - in_first + 1) * page_bytes;
    *iteration = (touch->address - start) / step;
  } else {
    touch->address = low_page - (pages - in_first) * page_bytes - 1;
    *iteration = (start - touch->address + step - 1) / step;
  }
  return *iteration < count;
}

bool TouchedPages::next(PageTouch* touch) {
  if (string_) {
    uint64_t iterations[2];
    PageTouch touches[2];
    bool source = streams_[0].peek(page_bytes_, &iterations[0], &touches[0]);
    bool destination = streams_[1].peek(page_bytes_, &iterations[1], &touches[1]);
    if (!source && !destination) return false;
    int first = source && (!destination || iterations[0] <= iterations[1]) ? 0 : 1;
    *touch = touches[first];
    ++streams_[first].pages;
    return true;
  }
  if (run_ == run_count_) return false;
  const Run& run = runs_[run_];
  touch->address = run.address + at_;
  touch->op = op_;
  uint64_t to_page_end = page_bytes_ - (touch->address & (page_bytes_ - 1));
  at_ += to_page_end;
  if (at_ >= run.bytes) {
    ++run_;
    at_ = 0;
  }
  return true;
}

}  // namespace classaccess
