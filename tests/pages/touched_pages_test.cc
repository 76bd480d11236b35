// The order in which one instruction touches pages.
#include "agent/pages/touched_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "agent/x86/decode.h"

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;

struct Seen {
  uint64_t page;
  Op op;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << std::hex << seen.page << (seen.op == Op::kLoad ? " load" : seen.op == Op::kStore ? " store" : " rmw");
}

Instruction decoded(std::vector<uint8_t> bytes) {
  bytes.resize(15, 0x90);
  Instruction instruction;
  decode(bytes.data(), bytes.size(), &instruction);
  return instruction;
}

std::vector<Seen> all_of(TouchedPages pages) {
  std::vector<Seen> all;
  for (PageTouch touch; pages.next(&touch) && all.size() < 100000;) all.push_back({touch.address / kPage, touch.op});
  return all;
}

// Element by element, as the manual has it; each stream's page once.
std::vector<Seen> slowly(uint64_t rsi, uint64_t rdi, bool source, bool destination, uint64_t step, uint64_t count,
                         bool down, Op destination_op) {
  std::vector<Seen> all;
  std::vector<uint64_t> seen[2];
  auto touch = [&](int stream, uint64_t address, Op op) {
    for (uint64_t page : {address / kPage, (address + step - 1) / kPage}) {
      if (std::find(seen[stream].begin(), seen[stream].end(), page) != seen[stream].end()) continue;
      seen[stream].push_back(page);
      all.push_back({page, op});
    }
  };
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t distance = down ? 0 - i * step : i * step;
    if (source) touch(0, rsi + distance, Op::kLoad);
    if (destination) touch(1, rdi + distance, destination_op);
  }
  return all;
}

struct StringForm {
  const char* name;
  std::vector<uint8_t> bytes;
  uint64_t step;
  bool source, destination;
  Op op;
};

const StringForm kForms[] = {
    {"rep movsb", {0xf3, 0xa4}, 1, true, true, Op::kStore},
    {"rep movsd", {0xf3, 0xa5}, 4, true, true, Op::kStore},
    {"rep movsq", {0xf3, 0x48, 0xa5}, 8, true, true, Op::kStore},
    {"rep stosq", {0xf3, 0x48, 0xab}, 8, false, true, Op::kStore},
    {"rep lodsq", {0xf3, 0x48, 0xad}, 8, true, false, Op::kLoad},
    {"repe cmpsq", {0xf3, 0x48, 0xa7}, 8, true, true, Op::kLoad},
    {"repne scasb", {0xf2, 0xae}, 1, false, true, Op::kLoad},
};

TEST(TouchedPages, StringsAreElementByElement) {
  uint64_t random = 7;
  auto next = [&](uint64_t below) { return random = random * 6364136223846793005u + 1, (random >> 33) % below; };
  for (const StringForm& form : kForms) {
    Instruction instruction = decoded(form.bytes);
    ASSERT_EQ(instruction.execute, Execute::kString) << form.name;
    for (int i = 0; i < 400; ++i) {
      CpuState before, after;
      before.rip = 0x1000;
      bool down = next(2) == 1;
      uint64_t count = next(4) == 0 ? next(3) : next(3000);
      before.rflags = down ? 0x402 : 2;
      before.gpr[6] = 0x700000000 + next(8 * kPage);
      before.gpr[7] = 0x700100000 + next(8 * kPage);
      before.gpr[1] = count + 5;  // stopped before its end, as by a scan
      after = before;
      after.gpr[1] = 5;
      after.rip += instruction.length;
      EXPECT_EQ(all_of(TouchedPages(instruction, before, after, kPage)),
                slowly(before.gpr[6], before.gpr[7], form.source, form.destination, form.step, count, down, form.op))
          << form.name << " rsi " << std::hex << before.gpr[6] << " rdi " << before.gpr[7] << " count " << count
          << " down " << down;
    }
  }
}

TEST(TouchedPages, OneMoveTakesSourceThenDestination) {
  Instruction movsb = decoded({0xa4});
  CpuState before, after;
  before.gpr[6] = 0x9000;
  before.gpr[7] = 0x5010;
  after = before;
  EXPECT_TRUE(all_of(TouchedPages(movsb, before, after, kPage)).empty()) << "it has not been performed";
  after.rip = before.rip + 1;
  EXPECT_EQ(all_of(TouchedPages(movsb, before, after, kPage)), (std::vector<Seen>{{9, Op::kLoad}, {5, Op::kStore}}));
}

TEST(TouchedPages, LowerPageOfACrossingAccessFirst) {
  CpuState state;
  state.gpr[3] = 0x7ffd;
  EXPECT_EQ(all_of(TouchedPages(decoded({0x8b, 0x03}), state, state, kPage)),  // mov eax, [rbx]
            (std::vector<Seen>{{7, Op::kLoad}, {8, Op::kLoad}}));
  EXPECT_EQ(all_of(TouchedPages(decoded({0xff, 0x03}), state, state, kPage)),  // inc dword [rbx]
            (std::vector<Seen>{{7, Op::kRmw}, {8, Op::kRmw}}));
  state.gpr[3] = 0x7ffc;
  EXPECT_EQ(all_of(TouchedPages(decoded({0x89, 0x03}), state, state, kPage)),  // mov [rbx], eax
            (std::vector<Seen>{{7, Op::kStore}}));
}

TEST(TouchedPages, ARunOfBytes) {
  EXPECT_EQ(all_of(TouchedPages(0x1fff, 2 * kPage + 1, Op::kRmw, kPage)),
            (std::vector<Seen>{{1, Op::kRmw}, {2, Op::kRmw}, {3, Op::kRmw}}));
  EXPECT_EQ(all_of(TouchedPages(0x2000, kPage, Op::kLoad, kPage)), (std::vector<Seen>{{2, Op::kLoad}}));
  EXPECT_TRUE(all_of(TouchedPages(0x2000, 0, Op::kLoad, kPage)).empty());
}

}  // namespace
}  // namespace classaccess
