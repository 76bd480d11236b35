// Emulation and displaced copies against the same instruction run natively: registers,
// flags, vectors, masks, x87 and memory must be equal.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "agent/x86/decode.h"
#include "agent/x86/displace.h"
#include "agent/x86/emulate.h"
#include "agent/x86/operand.h"
#include "tests/x86/variants.h"

namespace classaccess::test {
namespace {

constexpr int kOpen = PROT_READ | PROT_WRITE;
constexpr int kCases = 12;  // a variant
// Operands and gather lanes lie in these pages.
constexpr size_t kWindow = 3 * kPage, kWindowBytes = 3 * kPage;

class Differential : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
    set_up_machine();
    init_xstate_layout();
    random_.seed(seed());
  }

  void close_heap() { protect(g_heap, 0, kPages, PROT_NONE); }
  void open_heap() { protect(g_heap, 0, kPages, kOpen); }

  void fill(bool quiet) {
    for (size_t i = kWindow; i < kWindow + kWindowBytes; i += 8) {
      uint64_t value = quiet ? 0x00001f8000001f80u : random_();
      memcpy(before_ + i, &value, 8);
    }
  }

  std::string memory_difference(const uint8_t* expected) {
    if (memcmp(expected + kWindow, twin() + kWindow, kWindowBytes) == 0) return "";
    for (size_t i = kWindow; i < kWindow + kWindowBytes; ++i) {
      if (expected[i] != twin()[i]) {
        size_t start = i & ~size_t{7};
        return " memory at +" + std::to_string(start) + " " + hex(expected + start, 32) + ", got " +
               hex(twin() + start, 32);
      }
    }
    return "";
  }

  std::string what(const Case& c) const { return *what_ + " " + hex(c.bytes, c.length); }

  // False: this draw does not run natively (unaligned, undefined operand pair).
  bool check(const Case& c, const std::string& name) {
    what_ = &name;
    memcpy(twin() + kWindow, before_ + kWindow, kWindowBytes);
    MachineState native = c.state;
    if (run_native(c.bytes, c.length, &native).outcome != Outcome::kCompleted) return false;
    memcpy(after_ + kWindow, twin() + kWindow, kWindowBytes);

    close_heap();
    if (c.decoded.execute == Execute::kEmulate) check_emulated(c, native);
    if (can_displace(c.decoded)) check_displaced(c, native);
    open_heap();
    return true;
  }

  void check_emulated(const Case& c, const MachineState& native) {
    memcpy(twin() + kWindow, before_ + kWindow, kWindowBytes);
    CpuState cpu = cpu_state(c.state);
    uint64_t address = effective_address(c.decoded, cpu);
    uint64_t value = ~uint64_t{0};
    ASSERT_TRUE(emulate(c.decoded, &cpu, reinterpret_cast<void*>(address + g_twin_distance), &value)) << what(c);
    MachineState actual = c.state;
    memcpy(actual.gpr, cpu.gpr, sizeof(cpu.gpr));
    actual.rflags = cpu.rflags;
    EXPECT_EQ("", compare(native, actual, false)) << what(c) << " emulated";
    EXPECT_EQ("", memory_difference(after_)) << what(c) << " emulated";
    EXPECT_EQ(native_code_address() + c.length, cpu.rip) << what(c);
    uint64_t expected = 0;
    size_t at = address - reinterpret_cast<uint64_t>(g_heap);
    memcpy(&expected, (c.decoded.op == Op::kLoad ? before_ : after_) + at, std::min<size_t>(c.decoded.size, 8));
    EXPECT_EQ(expected, value) << what(c) << " value";
    ++emulated_;
  }

  void check_displaced(const Case& c, const MachineState& native) {
    memcpy(twin() + kWindow, before_ + kWindow, kWindowBytes);
    uint8_t copy[kMaxDisplaced];
    size_t length = write_displaced(c.decoded, native_exit(), copy);
    ASSERT_TRUE(length != 0 && length <= kMaxDisplaced) << what(c);
    MachineState actual = c.state;
    NativeResult r = run_displaced(copy, length, g_twin_distance, &actual);
    EXPECT_EQ(Outcome::kCompleted, r.outcome) << what(c) << " displaced, fault at " << std::hex << r.fault_address;
    EXPECT_EQ("", compare(native, actual, true)) << what(c) << " displaced";
    EXPECT_EQ("", memory_difference(after_)) << what(c) << " displaced";
    ++displaced_;
  }

  // Puts what CMPXCHG expects into memory or registers; the operand's address stays.
  void make_exchange_succeed(Case* c, uint64_t address) {
    size_t at = address - reinterpret_cast<uint64_t>(g_heap);
    if (c->decoded.size <= 8 && c->decoded.opcode != 0xc7) {
      memcpy(before_ + at, &c->state.gpr[0], c->decoded.size);
      return;
    }
    size_t half = c->decoded.size / 2u;
    memcpy(before_ + at, &c->state.gpr[0], half);
    memcpy(before_ + at + half, &c->state.gpr[2], half);
  }

  uint64_t pick_address(const Variant& v) {
    uint64_t middle = reinterpret_cast<uint64_t>(g_heap) + 4 * kPage;
    uint64_t offset = random_() % 1024;
    // The kernel puts a thread to sleep for each locked access across cache lines.
    if (v.form->op == FormOp::kRmw && v.form->execute == Execute::kEmulate) return middle + (offset & ~uint64_t{15});
    switch (random_() % 3) {
      case 0: return middle + (offset & ~uint64_t{63});
      case 1: return middle + (offset & ~uint64_t{7});
      default: return middle + offset;
    }
  }

  Random random_;
  uint8_t before_[kHeapBytes], after_[kHeapBytes];
  const std::string* what_ = nullptr;
  int emulated_ = 0, displaced_ = 0;
};

TEST_F(Differential, EveryForm) {
  int variants = 0;
  for (const Variant& v : all_variants()) {
    if (!runnable(v) || v.form->op == FormOp::kNone) continue;
    bool quiet = v.form->map == OpcodeMap::k0F && v.opcode == 0xae;
    fill(quiet);
    memcpy(twin() + kWindow, before_ + kWindow, kWindowBytes);
    Legal legal = find_legal(v, random_);
    if (!legal.any) continue;
    ++variants;
    int done = 0;
    const std::string name = v.name();
    for (int i = 0; i < 8 * kCases && done < kCases; ++i) {
      Case c;
      uint64_t address = pick_address(v);
      if (quiet) address &= ~uint64_t{3};
      if (!make_case(v, legal, Wish{}, address, random_, &c)) continue;
      if (v.form->touch == FormTouch::kBitString && c.decoded.base == c.decoded.reg) continue;
      bool success = v.opcode == 0xb0 || v.opcode == 0xb1 || v.opcode == 0xc7;
      if (success && v.form->op == FormOp::kRmw && random_() % 2) make_exchange_succeed(&c, address);
      if (check(c, name)) ++done;
      if (testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > 60) {
        FAIL() << "too many failures";
      }
    }
    EXPECT_LT(kCases / 2, done) << v.name() << ": too few draws run";
  }
  printf("%d variants, %d emulated, %d displaced\n", variants, emulated_, displaced_);
  EXPECT_LT(3000, variants);
  EXPECT_LT(1000, emulated_);
  EXPECT_LT(15000, displaced_);
}

// Emulated forms once more with many draws: they are the common ones.
TEST_F(Differential, EmulatedForms) {
  for (const Variant& v : all_variants()) {
    if (v.form->execute != Execute::kEmulate) continue;
    fill(false);
    memcpy(twin() + kWindow, before_ + kWindow, kWindowBytes);
    Legal legal = find_legal(v, random_);
    ASSERT_TRUE(legal.any) << v.name();
    const std::string name = v.name();
    for (int i = 0; i < 300; ++i) {
      Case c;
      uint64_t address = pick_address(v);
      if (!make_case(v, legal, Wish{}, address, random_, &c)) continue;
      bool exchange = v.form->map == OpcodeMap::k0F && (v.opcode == 0xb0 || v.opcode == 0xb1 || v.opcode == 0xc7);
      if (exchange && random_() % 2) make_exchange_succeed(&c, address);
      check(c, name);
      if (HasFailure() && i > 20) break;
    }
  }
}

}  // namespace
}  // namespace classaccess::test
