// Lengths and memory operands against Capstone, which decodes by other tables: over the
// code of libjvm, libc and libz, and over random bytes. What Capstone 4 is known to get
// wrong is listed with the reason.
#include <capstone/capstone.h>
#include <elf.h>
#include <glob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "agent/x86/decode.h"
#include "tests/x86/native.h"

namespace classaccess::test {
namespace {

std::vector<uint8_t> read_file(const std::string& path) {
  std::vector<uint8_t> out;
  FILE* f = fopen(path.c_str(), "rb");
  if (f == nullptr) return out;
  uint8_t buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), f)) > 0;) out.insert(out.end(), buffer, buffer + n);
  fclose(f);
  return out;
}

std::vector<uint8_t> text_of(const std::string& path) {
  std::vector<uint8_t> file = read_file(path);
  if (file.size() < sizeof(Elf64_Ehdr)) return {};
  const Elf64_Ehdr* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  const Elf64_Shdr* sections = reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff);
  const char* names = reinterpret_cast<const char*>(file.data() + sections[header->e_shstrndx].sh_offset);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (strcmp(names + sections[i].sh_name, ".text") != 0) continue;
    return {file.data() + sections[i].sh_offset, file.data() + sections[i].sh_offset + sections[i].sh_size};
  }
  return {};
}

std::string find_file(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    glob_t found;
    bool ok = glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0;
    std::string path = ok ? found.gl_pathv[0] : "";
    globfree(&found);
    if (ok) return path;
  }
  return "";
}

int register_number(unsigned reg) {
  static const unsigned kOrder[16][2] = {
      {X86_REG_RAX, X86_REG_EAX},  {X86_REG_RCX, X86_REG_ECX},  {X86_REG_RDX, X86_REG_EDX},
      {X86_REG_RBX, X86_REG_EBX},  {X86_REG_RSP, X86_REG_ESP},  {X86_REG_RBP, X86_REG_EBP},
      {X86_REG_RSI, X86_REG_ESI},  {X86_REG_RDI, X86_REG_EDI},  {X86_REG_R8, X86_REG_R8D},
      {X86_REG_R9, X86_REG_R9D},   {X86_REG_R10, X86_REG_R10D}, {X86_REG_R11, X86_REG_R11D},
      {X86_REG_R12, X86_REG_R12D}, {X86_REG_R13, X86_REG_R13D}, {X86_REG_R14, X86_REG_R14D},
      {X86_REG_R15, X86_REG_R15D}};
  for (int i = 0; i < 16; ++i) {
    if (kOrder[i][0] == reg || kOrder[i][1] == reg) return i;
  }
  if (reg == X86_REG_RIP || reg == X86_REG_EIP) return kRip;
  return kNoReg;
}

class Capstone : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CS_ERR_OK, cs_open(CS_ARCH_X86, CS_MODE_64, &handle_));
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    insn_ = cs_malloc(handle_);
  }
  void TearDown() override {
    if (insn_ != nullptr) cs_free(insn_, 1);
    cs_close(&handle_);
  }

  bool disassemble(const uint8_t* bytes, size_t n) {
    uint64_t address = 0x1000;
    return cs_disasm_iter(handle_, &bytes, &n, &address, insn_);
  }

  // Why it does not count that Capstone decodes these bytes; nullptr: it does.
  static const char* known_overreach(const uint8_t* bytes) {
    bool prefix = false;
    for (; strchr("\x66\x67\xf0\xf2\xf3\x26\x2e\x36\x3e\x64\x65", bytes[0]) || (bytes[0] & 0xf0) == 0x40; ++bytes) {
      if (bytes[0] == 0) break;
      prefix = true;
    }
    if (prefix && (bytes[0] == 0xc4 || bytes[0] == 0xc5 || bytes[0] == 0x62)) return "prefix before VEX or EVEX: #UD";
    if (bytes[0] == 0x8f) return "XOP: not decoded here";
    if (bytes[0] != 0x0f) return nullptr;
    if (prefix && (bytes[1] == 0x78 || bytes[1] == 0x79)) return "SSE4A, shown as VMREAD";
    if (bytes[1] == 0xa6 || bytes[1] == 0xa7) return "VIA PadLock";
    if (bytes[1] == 0x0f) return "3DNow!";
    return nullptr;
  }

  // Why Capstone's length does not count.
  static const char* known_length(const Instruction& in) {
    if (in.encoding == Encoding::kEvex && in.broadcast && !in.has_memory) return "rounding forms: a byte too many";
    if (in.encoding != Encoding::kLegacy) return nullptr;
    if (in.map == OpcodeMap::k0F && (in.opcode == 0x78 || in.opcode == 0x79)) return "SSE4A, shown as VMREAD";
    if (in.map == OpcodeMap::k0F && (in.opcode == 0xb9 || in.opcode == 0xff)) return "UD0 and UD1 have a ModRM";
    bool near = in.opcode == 0xe8 || in.opcode == 0xe9 || (in.map == OpcodeMap::k0F && (in.opcode & 0xf0) == 0x80);
    if (near && in.address32) return "67 with REX.W makes Capstone read 4 bytes more (3.19)";
    if (in.opcode == 0x68 && in.operand16 && (in.rep || in.repne))
      return "PUSH imm16: F2 or F3 makes Capstone forget the 66";
    if (near && in.operand16) return "rel16 with 66 is AMD's; Intel ignores the prefix";
    if (in.map == OpcodeMap::k1Byte && (in.opcode == 0xc2 || in.opcode == 0xca) && in.rex_w) {
      return "RET imm16 with REX.W: the immediate stays 16 bits";
    }
    return nullptr;
  }

  // Why Capstone's memory operand does not count.
  static const char* known_operand(const Instruction& in) {
    if (in.vsib) return "3.06: vector index";
    if (in.encoding == Encoding::kEvex) {
      if (in.broadcast) return "3.06: index register of a broadcast";
      if (in.size == 0) return "no compressed displacement known";
    }
    return nullptr;
  }

  void compare(const uint8_t* bytes, size_t n) {
    if (!disassemble(bytes, n)) return;
    Instruction in;
    ++compared_;
    if (!decode(bytes, n, &in)) {
      if (known_overreach(bytes) != nullptr) return;
      if (strstr(insn_->mnemonic, "gather") != nullptr) return;  // without a SIB byte: #UD
      ADD_FAILURE() << "not decoded: " << hex(bytes, insn_->size) << " " << insn_->mnemonic << " " << insn_->op_str;
      return;
    }
    if (in.length != insn_->size) {
      if (known_length(in) != nullptr) return;
      ADD_FAILURE() << "length " << static_cast<int>(in.length) << " not " << insn_->size << ": "
                    << hex(bytes, insn_->size) << " " << insn_->mnemonic << " " << insn_->op_str;
      return;
    }
    if (!in.has_memory || !in.has_modrm || known_operand(in) != nullptr) return;
    const cs_x86& detail = insn_->detail->x86;
    for (int i = 0; i < detail.op_count; ++i) {
      const cs_x86_op& op = detail.operands[i];
      if (op.type != X86_OP_MEM) continue;
      // With EVEX.V' = 0 Capstone takes the index for a vector register (3.06).
      bool index = in.encoding == Encoding::kEvex || register_number(op.mem.index) == in.index;
      bool same = register_number(op.mem.base) == in.base && index &&
                  (in.index == kNoReg || op.mem.scale == in.scale) && op.mem.disp == in.displacement;
      EXPECT_TRUE(same) << hex(bytes, insn_->size) << " " << insn_->mnemonic << " " << insn_->op_str << ": base "
                        << static_cast<int>(in.base) << " index " << static_cast<int>(in.index) << " displacement "
                        << in.displacement;
      break;
    }
  }

  void compare_library(const std::vector<std::string>& patterns, size_t limit) {
    std::string path = find_file(patterns);
    if (path.empty()) GTEST_SKIP() << "not here: " << patterns[0];
    std::vector<uint8_t> text = text_of(path);
    ASSERT_LT(1000u, text.size()) << path;
    size_t end = std::min(text.size(), limit);
    for (size_t at = 0; at + 16 < end;) {
      size_t available = std::min<size_t>(15, end - at);
      compare(text.data() + at, available);
      if (testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > 30) break;
      Instruction in;
      at += decode(text.data() + at, available, &in) ? in.length : 1u;
    }
    printf("%s: %d instructions\n", path.c_str(), compared_);
  }

  csh handle_ = 0;
  cs_insn* insn_ = nullptr;
  int compared_ = 0;
};

constexpr size_t kAll = ~size_t{0}, kSample = 4 << 20;

TEST_F(Capstone, Libc) { compare_library({"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"}, kAll); }
TEST_F(Capstone, Libz) { compare_library({"/lib/x86_64-linux-gnu/libz.so.1", "/lib64/libz.so.1"}, kAll); }
TEST_F(Capstone, Libjvm17) { compare_library({"/usr/lib/jvm/*17*/lib/server/libjvm.so"}, kSample); }
TEST_F(Capstone, Libjvm25) { compare_library({"/usr/lib/jvm/*25*/lib/server/libjvm.so"}, kSample); }

TEST_F(Capstone, RandomBytes) {
  std::mt19937_64 random(seed());
  // No EVEX here: Capstone takes reserved lengths and ignored W bits for other forms, and
  // the probe test asks the CPU itself about each of them.
  constexpr uint8_t kStarts[] = {0xc4, 0xc5, 0x0f, 0x66, 0xf2, 0xf3, 0x48, 0x41, 0x67};
  for (int i = 0; i < 300000; ++i) {
    uint8_t bytes[16];
    for (size_t b = 0; b < 16; b += 8) {
      uint64_t v = random();
      memcpy(bytes + b, &v, 8);
    }
    if (random() % 2) bytes[0] = kStarts[random() % sizeof(kStarts)];
    if (memchr(bytes, 0x62, 4) != nullptr) continue;
    compare(bytes, 15);
    if (testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > 60) break;
  }
  printf("%d instructions\n", compared_);
}

}  // namespace
}  // namespace classaccess::test
