// The instructions of real programs: each decodes, is executed without a single step, agrees with Capstone in size
// and direction, and does what the CPU does.
#include "tests/x86/corpus.h"

#include <capstone/capstone.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "agent/x86/decode.h"
#include "agent/x86/displace.h"
#include "agent/x86/operand.h"
#include "tests/x86/differential.h"

namespace classaccess::test {
namespace {

const std::vector<CorpusLine>& corpus() {
  static const std::vector<CorpusLine> lines = read_corpus(CLASSACCESS_CORPUS);
  return lines;
}

Instruction decoded(const CorpusLine& line) {
  Instruction in;
  if (!decode(line.bytes, line.length, &in)) in.length = 0;
  return in;
}

TEST(Corpus, HasEveryKindOfCode) {
  std::map<char, size_t> kinds;
  for (const CorpusLine& line : corpus()) {
    for (char kind : line.kinds) ++kinds[kind];
  }
  printf("%zu instructions:", corpus().size());
  for (const auto& [kind, count] : kinds) printf(" %c %zu", kind, count);
  printf("\n");
  EXPECT_LE(1000u, corpus().size());
  for (char kind : std::string("i12svgn")) EXPECT_LE(10u, kinds[kind]) << kind;
}

TEST(Corpus, DecodesAndIsNeverStepped) {
  uint64_t all = 0, executed = 0;
  for (const CorpusLine& line : corpus()) {
    std::string text = corpus_text(line);
    Instruction in = decoded(line);
    ASSERT_EQ(line.length, in.length) << text;
    ASSERT_TRUE(in.touches_memory) << text;
    ASSERT_NE(0, in.size) << text;
    CorpusLine normal = line;
    ASSERT_TRUE(normalise(&normal));
    EXPECT_EQ(text, corpus_text(normal)) << "not normalised";
    bool without_step = in.execute == Execute::kEmulate || in.execute == Execute::kString ||
                        (in.execute == Execute::kDisplace && can_displace(in));
    all += line.weight;
    if (without_step) executed += line.weight;
    EXPECT_TRUE(without_step) << text << " is stepped";
  }
  printf("%lu of %lu executions without a step\n", executed, all);
  ASSERT_LT(0u, all);
  EXPECT_LE(0.99999 * static_cast<double>(all), static_cast<double>(executed));
}

// Capstone's memory operands together.
struct Operand {
  unsigned size = 0;
  bool read = false, write = false;
};

// Why Capstone's answer does not count; nullptr: it does. The CPU itself confirms ours in probe_test.cc.
const char* capstone_exception(const Instruction& in, const Operand& capstone) {
  if (capstone.size != in.size) return nullptr;
  bool vector = in.encoding != Encoding::kLegacy;
  if (vector && in.op == Op::kStore && !capstone.write) return "VEX and EVEX stores are called reads";
  if (in.encoding == Encoding::kEvex && in.op == Op::kLoad && !capstone.read && !capstone.write) {
    return "masked EVEX loads have no access at all";
  }
  if (in.op == Op::kRmw && !capstone.write && in.map == OpcodeMap::k0F && (in.opcode & 0xfe) == 0xb0) {
    return "CMPXCHG is called a read";
  }
  if (in.execute == Execute::kString && (in.opcode & 0xfe) == 0xa4)
    return "MOVS: a load and a store, ours is the store";
  return nullptr;
}

TEST(Corpus, SizeAndDirectionAgreeWithCapstone) {
  csh handle = 0;
  ASSERT_EQ(CS_ERR_OK, cs_open(CS_ARCH_X86, CS_MODE_64, &handle));
  cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
  size_t agreed = 0, unknown = 0;
  std::map<std::string, size_t> excepted;
  for (const CorpusLine& line : corpus()) {
    Instruction in = decoded(line);
    cs_insn* insn = nullptr;
    if (cs_disasm(handle, line.bytes, line.length, 0x1000, 1, &insn) != 1 || insn->size != line.length) {
      if (insn != nullptr) cs_free(insn, 1);
      EXPECT_EQ(Encoding::kEvex, in.encoding) << corpus_text(line) << ": Capstone does not decode it";
      ++unknown;
      continue;
    }
    const cs_x86& detail = insn->detail->x86;
    Operand operand;
    for (int i = 0; i < detail.op_count; ++i) {
      if (detail.operands[i].type != X86_OP_MEM) continue;
      operand.size = detail.operands[i].size;
      operand.read |= (detail.operands[i].access & CS_AC_READ) != 0;
      operand.write |= (detail.operands[i].access & CS_AC_WRITE) != 0;
    }
    bool same =
        operand.size == in.size && operand.write == (in.op != Op::kLoad) && operand.read == (in.op != Op::kStore);
    const char* reason = same ? nullptr : capstone_exception(in, operand);
    if (same) {
      ++agreed;
    } else if (reason != nullptr) {
      ++excepted[reason];
    } else {
      ADD_FAILURE() << corpus_text(line) << " " << insn->mnemonic << " " << insn->op_str << ": size " << in.size
                    << " op " << static_cast<int>(in.op) << ", Capstone " << operand.size
                    << (operand.read ? " read" : "") << (operand.write ? " write" : "");
    }
    cs_free(insn, 1);
  }
  cs_close(&handle);
  printf("%zu agree, %zu are not known to Capstone\n", agreed, unknown);
  for (const auto& [reason, count] : excepted) printf("  %zu: %s\n", count, reason.c_str());
}

class CorpusDifferential : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
    set_up_machine();
    init_xstate_layout();
  }
};

// XLAT has no ModRM, so it is no row of the table.
TEST_F(CorpusDifferential, Xlat) {
  Random random(seed());
  Differential differential(&random);
  differential.fill_random();
  for (const char* text : {"d7 n 1", "48d7 n 1", "67d7 n 1", "3ed7 n 1"}) {
    CorpusLine line;
    ASSERT_TRUE(parse_corpus_line(text, &line));
    ASSERT_EQ(Execute::kDisplace, decoded(line).execute);
    for (int i = 0; i < 500; ++i) {
      Place place = static_cast<Place>(i % 4);
      Case c;
      ASSERT_TRUE(make_corpus_case(line, differential.pick_address(place, 1, false), random, &c));
      bool ran = false;
      EXPECT_EQ("", differential.check(c, place, &ran)) << text;
      EXPECT_TRUE(ran);
    }
  }
  EXPECT_LT(100u, differential.counts().crossed);
}

TEST_F(CorpusDifferential, IsWhatTheCpuDoes) {
  const char* text = getenv("CLASSACCESS_CASES");
  uint64_t cases = text != nullptr ? strtoull(text, nullptr, 0) : 200000;
  uint64_t wanted = cases / (corpus().size() + 1) + 8;
  int failures = 0;
  size_t strings = 0, without = 0;
  Random random;
  Differential differential(&random);
  for (size_t number = 0; number < corpus().size() && failures < 40; ++number) {
    const CorpusLine& line = corpus()[number];
    Instruction in = decoded(line);
    if (in.length != line.length) continue;  // the test above fails
    if (in.execute == Execute::kString) {
      ++strings;  // string_test.cc
      continue;
    }
    random.seed(seed() + number);
    differential.fill_random();
    uint64_t done = 0;
    for (uint64_t draw = 0; draw < 8 * wanted && done < wanted; ++draw) {
      Place place = static_cast<Place>(random() % 4);
      bool exchange =
          in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k1Byte && (in.opcode == 0x86 || in.opcode == 0x87);
      Case c;
      uint64_t address = differential.pick_address(place, in.size, exchange || in.lock);
      if (!make_corpus_case(line, address, random, &c)) continue;
      if (in.lock && random() % 2) differential.make_exchange_succeed(c);
      bool ran = false;
      std::string wrong = differential.check(c, place, &ran);
      done += ran;
      if (wrong.empty()) continue;
      ADD_FAILURE() << corpus_text(line) << " place " << static_cast<int>(place) << wrong;
      if (++failures > 40) break;
    }
    if (done == 0) ++without;
    EXPECT_EQ("", differential.check_rest()) << corpus_text(line);
  }
  const DifferentialCounts& n = differential.counts();
  printf(
      "%lu cases of %zu instructions: %lu emulated, %lu displaced, %lu beyond a hole or the end, %lu masked off; "
      "%zu string instructions, %zu with no case\n",
      n.cases, corpus().size(), n.emulated, n.displaced, n.crossed, n.masked, strings, without);
  EXPECT_LE(without, corpus().size() / 100);
}

}  // namespace
}  // namespace classaccess::test
