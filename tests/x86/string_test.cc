// String instructions done as a whole against the CPU's, in the middle of the heap,
// across heap and ordinary memory, overlapping, in both directions, with faults on the way.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "agent/x86/decode.h"
#include "agent/x86/string_ops.h"
#include "tests/x86/native.h"

namespace classaccess::test {
namespace {

constexpr int kOpen = PROT_READ | PROT_WRITE;

struct Touch {
  uint64_t address, bytes;
  Op op;
};

struct Sink {
  std::vector<Touch> touches;
  uint64_t limit = ~uint64_t{0};  // pieces are cut here, as at a boundary of an armed range
};

uint64_t translate(void* context, uint64_t address, uint64_t* below, uint64_t* above) {
  uint64_t low = reinterpret_cast<uint64_t>(g_heap), high = low + kHeapBytes;
  uint64_t limit = static_cast<Sink*>(context)->limit;
  uint64_t host = address;
  if (address >= low && address < high) {
    *below = address - low;
    *above = high - address;
    host += g_twin_distance;
  } else if (address < low) {
    *below = address;
    *above = low - address;
  } else {
    *below = address - high;
    *above = ~address;
  }
  // An artificial seam every `limit` bytes, on element boundaries of 8.
  if (limit != ~uint64_t{0}) {
    *below = std::min(*below, address % limit);
    *above = std::min(*above, limit - address % limit);
  }
  return host;
}

void touched(void* context, uint64_t address, uint64_t bytes, Op op) {
  static_cast<Sink*>(context)->touches.push_back(Touch{address, bytes, op});
}

class Strings : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
    set_up_machine();
    random_.seed(seed());
    protect(g_behind, 0, 1, PROT_NONE);
    for (size_t i = 0; i < sizeof(rare_); ++i) {
      rare_[i] = random_() % 2048 == 0;
      common_[i] = random_() % 16 == 0;
    }
  }

  // Few byte values, so that comparisons run for a while.
  void fill(uint8_t* to) {
    memcpy(to, (random_() % 3 ? rare_ : common_) + random_() % (sizeof(rare_) - kHeapBytes), kHeapBytes);
  }

  void restore() {
    memcpy(twin(), heap_, kHeapBytes);
    memcpy(g_outside, outside_, kHeapBytes);
  }

  uint64_t pick_pointer(unsigned bytes) {
    uint64_t area = reinterpret_cast<uint64_t>(random_() % 3 ? g_heap : g_outside);
    uint64_t offset = 2 * kPage + random_() % (4 * kPage);
    return area + (random_() % 2 ? offset & ~static_cast<uint64_t>(bytes - 1) : offset);
  }

  void one_case();

  Random random_;
  uint8_t rare_[4 * kHeapBytes], common_[4 * kHeapBytes];
  uint8_t heap_[kHeapBytes], outside_[kHeapBytes];
  uint8_t native_heap_[kHeapBytes], native_outside_[kHeapBytes];
  int stopped_ = 0, done_ = 0;
};

void Strings::one_case() {
  constexpr uint8_t kOpcodes[] = {0xa4, 0xa6, 0xaa, 0xac, 0xae};
  uint8_t opcode = kOpcodes[random_() % 5];
  uint8_t code[15];
  size_t n = 0;
  unsigned repeat = random_() % 3;
  if (random_() % 8 == 0) code[n++] = 0x67;
  if (repeat == 1) code[n++] = 0xf3;
  if (repeat == 2) code[n++] = 0xf2;
  unsigned size = 1u << random_() % 4;
  if (size == 2) code[n++] = 0x66;
  if (size == 8) code[n++] = 0x48;
  code[n++] = static_cast<uint8_t>(opcode | (size != 1));

  MachineState state;
  randomize(random_, &state);
  constexpr uint64_t kDirection = 0x400;
  if (random_() % 2) state.rflags |= kDirection;
  state.gpr[7] = pick_pointer(size);
  state.gpr[6] = random_() % 4 == 0 ? state.gpr[7] + random_() % 65 - 32 : pick_pointer(size);
  constexpr uint64_t kCounts[] = {0, 1, 2, 3, 17, 100, 600, 3000, 20000};
  state.gpr[1] = kCounts[random_() % 9];
  // (With ecx = 0 the CPU may clear upper halves; such an instruction never faults.)
  if (code[0] == 0x67 && state.gpr[1] != 0 && random_() % 2) {
    state.gpr[1] |= random_() << 32;
    state.gpr[6] |= random_() << 32;
    state.gpr[7] |= random_() << 32;
  }
  fill(heap_);
  fill(outside_);
  if (random_() % 2) state.gpr[0] = 0;
  // Sometimes ordinary memory ends on the way.
  size_t closed = random_() % 3 == 0 ? 3 + random_() % 3 : kPages;
  if (closed < kPages) protect(g_outside, closed, 1, PROT_NONE);
  auto reopen = [&] { protect(g_outside, 0, kPages, kOpen); };

  reopen();
  restore();
  if (closed < kPages) protect(g_outside, closed, 1, PROT_NONE);
  MachineState native = state;
  NativeResult r = run_native(code, n, &native);
  reopen();
  memcpy(native_heap_, twin(), kHeapBytes);
  memcpy(native_outside_, g_outside, kHeapBytes);

  restore();
  Instruction in;
  ASSERT_TRUE(decode(code, n, &in));
  ASSERT_EQ(Execute::kString, in.execute);
  ASSERT_EQ(size, in.operand_bytes);
  CpuState cpu = cpu_state(state);
  Sink sink;
  if (random_() % 2 && state.gpr[7] % 8 == 0 && state.gpr[6] % 8 == 0) sink.limit = 4096;
  StringAccess access{&sink, translate, touched};
  if (closed < kPages) protect(g_outside, closed, 1, PROT_NONE);
  protect(g_heap, 0, kPages, PROT_NONE);
  StringResult result = run_string(in, &cpu, access);
  protect(g_heap, 0, kPages, kOpen);
  reopen();

  char text[300];
  snprintf(text, sizeof(text), "%s rcx %lx rsi %lx rdi %lx flags %lx closed %zu", hex(code, n).c_str(), state.gpr[1],
           state.gpr[6], state.gpr[7], state.rflags, closed);
  MachineState actual = state;
  memcpy(actual.gpr, cpu.gpr, sizeof(cpu.gpr));
  actual.rflags = cpu.rflags;
  bool faulted = r.outcome == Outcome::kPageFault;
  EXPECT_EQ(faulted ? StringResult::kStopped : StringResult::kDone, result) << text;
  if (faulted) actual.rflags = native.rflags;  // flags in mid-string do not matter: an iteration follows
  if (faulted && in.address32) {
    // Whether the CPU has already cleared upper halves then is its own affair.
    for (int reg : {1, 6, 7}) {
      native.gpr[reg] &= 0xffffffff;
      actual.gpr[reg] &= 0xffffffff;
    }
  }
  EXPECT_EQ("", compare(native, actual, false)) << text;
  EXPECT_EQ(0, memcmp(native_heap_, twin(), kHeapBytes)) << text;
  EXPECT_EQ(0, memcmp(native_outside_, g_outside, kHeapBytes)) << text;
  EXPECT_EQ(native_code_address() + (faulted ? 0 : n), cpu.rip) << text;
  (faulted ? stopped_ : done_)++;

  // The runs reported are what the registers moved over.
  bool down = state.rflags & kDirection;
  bool narrow = in.address32;
  auto moved = [&](int reg) {
    uint64_t from = state.gpr[reg], to = cpu.gpr[reg];
    if (narrow) from &= 0xffffffff, to &= 0xffffffff;
    return down ? from - to : to - from;
  };
  uint64_t source = 0, destination = 0;
  Op destination_op = opcode == 0xa4 || opcode == 0xaa ? Op::kStore : Op::kLoad;
  bool two = opcode == 0xa4 || opcode == 0xa6;
  for (size_t i = 0; i < sink.touches.size(); ++i) {
    const Touch& t = sink.touches[i];
    bool is_source = two ? i % 2 == 0 : opcode == 0xac;
    EXPECT_EQ(is_source ? Op::kLoad : destination_op, t.op) << text;
    uint64_t start = state.gpr[is_source ? 6 : 7] & (narrow ? 0xffffffff : ~uint64_t{0});
    uint64_t& total = is_source ? source : destination;
    EXPECT_EQ(down ? start + size - total - t.bytes : start + total, t.address) << text;
    total += t.bytes;
  }
  if (cpu.gpr[1] != state.gpr[1] || repeat == 0) {
    bool uses_source = two || opcode == 0xac;
    EXPECT_EQ(uses_source ? moved(6) : 0, source) << text;
    EXPECT_EQ(opcode != 0xac ? moved(7) : 0, destination) << text;
  } else {
    EXPECT_TRUE(sink.touches.empty()) << text;
  }
}

TEST_F(Strings, AgainstTheCpu) {
  for (int i = 0; i < 40000 && !HasFailure(); ++i) one_case();
  printf("%d complete, %d stopped by a fault\n", done_, stopped_);
  EXPECT_LT(100, stopped_);
}

// An element that lies in two translations at once is left to the caller.
TEST_F(Strings, ElementAcrossTranslationsStops) {
  const uint8_t code[] = {0xf3, 0x48, 0xab};  // rep stosq
  Instruction in;
  ASSERT_TRUE(decode(code, sizeof(code), &in));
  MachineState state{};
  CpuState cpu = cpu_state(state);
  uint64_t seam = reinterpret_cast<uint64_t>(g_heap) + kPage;
  cpu.gpr[7] = seam - 20;
  cpu.gpr[1] = 10;
  Sink sink;
  sink.limit = kPage;
  EXPECT_EQ(StringResult::kStopped, run_string(in, &cpu, StringAccess{&sink, translate, touched}));
  EXPECT_EQ(8u, cpu.gpr[1]);
  EXPECT_EQ(seam - 4, cpu.gpr[7]);
  ASSERT_EQ(1u, sink.touches.size());
  EXPECT_EQ(16u, sink.touches[0].bytes);
}

}  // namespace
}  // namespace classaccess::test
