// The table's sizes, directions and masks against the real CPU: an operand is placed
// across the edge of a closed page, and a fault must come exactly when a byte that the
// decoder says is touched lies there.
#include <cpuid.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "agent/x86/operand.h"
#include "tests/x86/variants.h"

namespace classaccess::test {
namespace {

constexpr int kOpen = PROT_READ | PROT_WRITE;

uint64_t heap() { return reinterpret_cast<uint64_t>(g_heap); }
uint64_t edge() { return heap() + 4 * kPage; }

bool touches(const TouchedRuns& runs, uint64_t low, uint64_t high) {
  for (uint32_t i = 0; i < runs.count; ++i) {
    if (runs.runs[i].address < high && runs.runs[i].address + runs.runs[i].size > low) return true;
  }
  return false;
}

TouchedRuns touched_by(const Case& c) {
  CpuState cpu = cpu_state(c.state);
  cpu.fpstate = xsave_image(c.state);
  TouchedRuns runs;
  find_touched(c.decoded, cpu, &runs);
  return runs;
}

// Faults although the bytes are masked off: MASKMOV gives no guarantee, VEXTRACT is of
// exception type E6NF. What they write is still only what the mask says.
bool may_fault_masked(const Variant& v) {
  if (v.form->touch == FormTouch::kByteMask) return true;
  return v.encoding == Encoding::kEvex && v.form->map == OpcodeMap::k0F3A &&
         (v.opcode == 0x19 || v.opcode == 0x1b || v.opcode == 0x39 || v.opcode == 0x3b);
}

// CLFLUSH, CLFLUSHOPT, CLWB check the page like a load of one byte.
bool is_flush(const Variant& v) {
  return v.form->op == FormOp::kNone && v.form->map == OpcodeMap::k0F && v.opcode == 0xae;
}

bool has_fp16() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 23 & 1);
}

struct Score {
  int ran = 0, faulted = 0;
};

class Probe : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
    set_up_machine();
    init_xstate_layout();
    random_.seed(seed());
  }

  // Runs the case with the pages from `first` on (count) closed.
  NativeResult run(const Case& c, size_t first, size_t count, int protection) {
    protect(g_heap, first, count, protection);
    MachineState state = c.state;
    NativeResult r = run_native(c.bytes, c.length, &state);
    protect(g_heap, 0, kPages, kOpen);
    return r;
  }

  // One placement: operand `before` bytes below the edge; pages above or below closed.
  void probe_edge(const Variant& v, const Legal& legal, uint64_t address, bool close_above, bool plain, Score* score) {
    Case c;
    Wish wish;
    wish.plain = plain;
    if (!make_case(v, legal, wish, address, random_, &c)) return;
    TouchedRuns runs = touched_by(c);
    bool expected = close_above ? touches(runs, edge(), heap() + kHeapBytes) : touches(runs, heap(), edge());
    NativeResult r = close_above ? run(c, 4, 4, PROT_NONE) : run(c, 0, 4, PROT_NONE);
    if (r.outcome == Outcome::kIllegal) return;
    if (r.outcome == Outcome::kGeneralProtection) return;  // alignment
    bool faulted =
        r.outcome == Outcome::kPageFault && r.fault_address >= heap() && r.fault_address < heap() + kHeapBytes;
    ++score->ran;
    score->faulted += faulted;
    if (faulted && (may_fault_masked(v) || is_flush(v))) return;
    EXPECT_EQ(expected, faulted) << v.name() << " " << hex(c.bytes, c.length) << " at edge"
                                 << (close_above ? "" : " low") << " " << static_cast<int64_t>(address - edge())
                                 << " size " << c.decoded.size << " op " << static_cast<int>(c.decoded.op) << " mask k"
                                 << static_cast<int>(c.decoded.mask) << "=" << std::hex << c.state.k[c.decoded.mask]
                                 << " lanes " << static_cast<int>(c.decoded.mask_lanes) << " touch "
                                 << static_cast<int>(c.decoded.touch);
  }

  // A read-only page faults exactly for stores and read-modify-writes.
  void probe_direction(const Variant& v, const Legal& legal) {
    Case c;
    if (!make_case(v, legal, Wish{true, true}, edge(), random_, &c)) return;
    TouchedRuns runs = touched_by(c);
    bool expected = c.decoded.touches_memory && c.decoded.op != Op::kLoad && runs.count != 0;
    NativeResult r = run(c, 0, kPages, PROT_READ);
    if (r.outcome == Outcome::kIllegal || r.outcome == Outcome::kGeneralProtection) return;
    bool faulted = r.outcome == Outcome::kPageFault;
    if (faulted && may_fault_masked(v)) return;
    EXPECT_EQ(expected, faulted) << v.name() << " " << hex(c.bytes, c.length);
    EXPECT_EQ(faulted, r.fault_write) << v.name();
  }

  Random random_;
};

TEST_F(Probe, SizeAndDirectionOfEveryForm) {
  std::map<size_t, int> ran_by_row;
  std::vector<Variant> variants = all_variants();
  int instances = 0;
  for (const Variant& v : variants) {
    if (!runnable(v)) continue;
    fill_memory(v, random_, twin(), kHeapBytes);
    Legal legal = find_legal(v, random_);
    if (!legal.any) continue;
    legal.lock = false;  // the kernel puts a thread to sleep for locked accesses across cache lines
    ++instances;
    Case sample;
    bool made = false;
    for (int i = 0; i < 50 && !made; ++i) made = make_case(v, legal, Wish{true, false}, edge(), random_, &sample);
    ASSERT_TRUE(made) << v.name();
    int64_t size = std::max<int64_t>(sample.decoded.size, 1);
    Score score;
    // The claimed last byte just inside, then one byte (for aligned forms: one operand) beyond.
    // Again where registers drawn at random made no legal case at any placement.
    const bool memory = v.form->op != FormOp::kNone || is_flush(v);
    for (int repeat = 0; repeat < 2 || (memory && score.faulted == 0 && repeat < 20); ++repeat) {
      for (int64_t back : {size, size - 1, int64_t{1}, int64_t{0}}) {
        probe_edge(v, legal, edge() - static_cast<uint64_t>(back), true, true, &score);
        probe_edge(v, legal, edge() - static_cast<uint64_t>(back), false, true, &score);
      }
      probe_direction(v, legal);
    }
    // Masks, lanes, broadcasts, index lanes: anywhere across the edge.
    bool rich = legal.mask || legal.broadcast || v.form->touch != FormTouch::kWhole;
    for (int i = 0; i < (rich ? 24 : 2); ++i) {
      int64_t unit = std::max<int64_t>(sample.decoded.element_bytes, 1);
      int64_t back = static_cast<int64_t>(random_() % static_cast<uint64_t>(size / unit + 1)) * unit;
      probe_edge(v, legal, edge() - static_cast<uint64_t>(back), random_() % 2 != 0, false, &score);
    }
    ran_by_row[v.row] += score.ran;
    EXPECT_EQ(memory, score.faulted != 0) << v.name() << ": no placement faulted, or a hint did";
    int failures = testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    if (failures > 100) FAIL() << "too many failures";
  }
  printf("%d of %zu variants ran here\n", instances, variants.size());
  // Rows that nothing ran of: those that only step, and instructions this CPU may lack.
  for (size_t row = 0; row < kFormCount; ++row) {
    const Form& f = kFormTable[row];
    if (ran_by_row[row] != 0 || f.execute == Execute::kStep) continue;
    bool rare = f.map == OpcodeMap::k0F38 && (f.first == 0x68 || f.first == 0xc6);  // VP2INTERSECT, AVX512PF
    bool fp16 = f.map == OpcodeMap::kMap5 || f.map == OpcodeMap::kMap6;
    EXPECT_TRUE(rare || (fp16 && !has_fp16()))
        << "never ran: map " << static_cast<int>(f.map) << " " << std::hex << static_cast<int>(f.first) << " prefix "
        << static_cast<int>(f.prefix) << " /" << static_cast<int>(f.digit);
  }
}

}  // namespace
}  // namespace classaccess::test
