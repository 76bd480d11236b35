// Emulation and displaced copies against the same instruction run natively: registers,
// flags, vectors, masks, x87 and memory must be equal, for every form of the table.
//
// Environment: CLASSACCESS_SEED, CLASSACCESS_CASES (default 1000000), CLASSACCESS_MINUTES (instead of a
// number of cases), CLASSACCESS_ROUND and CLASSACCESS_FORM (one variant by its number, in one round): printed with
// a failure.
#include "tests/x86/differential.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "agent/x86/operand.h"

namespace classaccess::test {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0' ? strtoull(text, nullptr, 0) : otherwise;
}

// Forms that are single-stepped by design, and why. Nothing else may be.
const char* why_stepped(const Form& f) {
  if (f.map == OpcodeMap::k1Byte) {
    if (f.first >= 0xf6 && f.first <= 0xf7) return "DIV, IDIV: may raise SIGFPE, whose PC must be the original's";
    if (f.first == 0xff) return "CALL, JMP through memory: the PC is the result";
  }
  if (f.map == OpcodeMap::k0F && (f.first == 0xae || f.first == 0xc7)) return "FXSAVE, FXRSTOR, XSAVE family";
  return nullptr;
}

// Forms that a CPU may lack.
bool may_be_missing(const Form& f) {
  if (f.map == OpcodeMap::kMap5 || f.map == OpcodeMap::kMap6) return true;  // AVX512-FP16
  return f.map == OpcodeMap::k0F38 &&
         (f.first == 0x68 || f.first == 0xc6 || f.first == 0xc7);  // VP2INTERSECT, AVX512PF
}

std::string form_name(const Form& f) {
  char text[96];
  snprintf(text, sizeof(text), "map %d %02x-%02x prefix %d /%d w%d", static_cast<int>(f.map), f.first, f.last,
           static_cast<int>(f.prefix), f.digit, f.w);
  return text;
}

class EveryForm : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
    set_up_machine();
    init_xstate_layout();
  }

  // `wanted` cases of a variant. The generator starts anew for each, so that one can be repeated alone.
  void run(size_t number, uint64_t round, uint64_t wanted) {
    const Variant& v = variants_[number];
    uint64_t start = seed() + 0x9e3779b97f4a7c15u * (number + 1);
    if (!tried_[number]) {
      random_.seed(start);
      differential_.fill(v);
      legal_[number] = find_legal(v, random_);
      tried_[number] = true;
    }
    const Legal& legal = legal_[number];
    if (!legal.any) return;
    random_.seed(start + round + 1);
    differential_.fill(v);
    round_ = round;
    if (v.form->execute == Execute::kEmulate) wanted *= 4;  // the common ones
    unsigned size = 8;
    const std::string name = v.name();
    uint64_t done = 0;
    for (uint64_t draw = 0; draw < 8 * wanted + 40 && done < wanted; ++draw) {
      bool exchange = v.form->map == OpcodeMap::k1Byte && (v.opcode == 0x86 || v.opcode == 0x87);
      Place place = static_cast<Place>(random_() % 8 < 4 ? 0 : random_() % 4);
      Case c;
      Legal drawn = legal;
      if (place != Place::kInside) drawn.lock = false;
      unsigned reach = v.form->touch == FormTouch::kIndexed ? 64 : size;
      uint64_t address = differential_.pick_address(place, reach, exchange || drawn.lock);
      if (needs_quiet_memory(v)) address &= ~uint64_t{3};
      if (!make_case(v, drawn, Wish{}, address, random_, &c)) continue;
      size = c.decoded.size;
      // The registers of a bit string give both the address and the bit.
      if (v.form->touch == FormTouch::kBitString &&
          (c.decoded.base == c.decoded.reg || c.decoded.index == c.decoded.reg))
        continue;
      bool compares = v.form->op == FormOp::kRmw && v.form->map == OpcodeMap::k0F &&
                      (v.opcode == 0xb0 || v.opcode == 0xb1 || v.opcode == 0xc7);
      if (compares && random_() % 2) differential_.make_exchange_succeed(c);
      bool ran = false;
      std::string wrong = differential_.check(c, place, &ran);
      done += ran;
      if (!wrong.empty())
        fail(number, name + " " + hex(c.bytes, c.length) + " place " + std::to_string(static_cast<int>(place)) + wrong);
      if (failures_ > 40) return;
    }
    cases_by_row_[v.row] += done;
    if (done < wanted / 2) fail(number, name + ": only " + std::to_string(done) + " draws ran");
    std::string rest = differential_.check_rest();
    if (!rest.empty()) fail(number, name + ": " + rest);
  }

  void fail(size_t number, const std::string& what) {
    ++failures_;
    ADD_FAILURE() << what << "\n  again: CLASSACCESS_SEED=" << seed() << " CLASSACCESS_CASES=" << cases_
                  << " CLASSACCESS_ROUND=" << round_ << " CLASSACCESS_FORM=" << number
                  << " tests/x86/differential_test --gtest_filter=EveryForm.*";
  }

  std::vector<Variant> variants_ = all_variants();
  std::vector<Legal> legal_ = std::vector<Legal>(variants_.size());
  std::vector<bool> tried_ = std::vector<bool>(variants_.size());
  std::vector<uint64_t> cases_by_row_ = std::vector<uint64_t>(kFormCount);
  Random random_;
  Differential differential_{&random_};
  uint64_t cases_ = from_environment("CLASSACCESS_CASES", 1000000);
  uint64_t round_ = 0;
  int failures_ = 0;
};

TEST_F(EveryForm, IsWhatTheCpuDoes) {
  uint64_t minutes = from_environment("CLASSACCESS_MINUTES", 0);
  uint64_t only = from_environment("CLASSACCESS_FORM", ~uint64_t{0});
  size_t runnable_count = 0;
  for (const Variant& v : variants_) runnable_count += runnable(v);
  uint64_t wanted = cases_ * 5 / 4 / runnable_count + 16;
  Clock::time_point end = Clock::now() + std::chrono::minutes(minutes);
  uint64_t round = from_environment("CLASSACCESS_ROUND", 0);
  do {
    for (size_t i = 0; i < variants_.size() && failures_ <= 40; ++i) {
      if (only != ~uint64_t{0} && i != only) continue;
      if (runnable(variants_[i])) run(i, round, wanted);
    }
    ++round;
  } while (failures_ == 0 && only == ~uint64_t{0} &&
           (Clock::now() < end || (minutes == 0 && differential_.counts().cases < cases_)));

  if (failures_ > 40) FAIL() << "too many failures";
  size_t forms = 0, stepped = 0, missing = 0, ran = 0;
  for (size_t row = 0; row < kFormCount; ++row) {
    const Form& f = kFormTable[row];
    ++forms;
    ran += cases_by_row_[row] != 0;
    if (cases_by_row_[row] != 0 || only != ~uint64_t{0}) continue;
    if (f.execute == Execute::kStep) {
      ++stepped;
      EXPECT_NE(nullptr, why_stepped(f)) << form_name(f) << " is stepped without a reason";
    } else if (may_be_missing(f)) {
      ++missing;
    } else {
      ADD_FAILURE() << "no case of " << form_name(f);
    }
  }
  const DifferentialCounts& n = differential_.counts();
  printf(
      "%lu cases of %zu forms (%zu variants): %lu emulated, %lu displaced, %lu of them beyond a hole or the end, "
      "%lu masked off there; of %zu forms %zu are stepped, %zu this CPU lacks; %lu draws not run\n",
      n.cases, ran, runnable_count, n.emulated, n.displaced, n.crossed, n.masked, forms, stepped, missing, n.not_run);
  if (only != ~uint64_t{0}) return;
  EXPECT_LE(400u, ran);
  EXPECT_LE(cases_, n.cases);
  EXPECT_LT(cases_ / 50, n.crossed);
  EXPECT_LT(cases_ / 500, n.masked);
}

}  // namespace
}  // namespace classaccess::test
