// Direction, size and execution of forms that decoders get wrong, one line each
// (hazards 3.01 to 3.07), and the rules of operands, displaced copies and flag liveness.
#include "agent/x86/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

#include "agent/x86/displace.h"
#include "agent/x86/flag_liveness.h"
#include "agent/x86/operand.h"
#include "tests/x86/native.h"

namespace classaccess::test {
namespace {

std::vector<uint8_t> parse(const char* text) {
  std::vector<uint8_t> out;
  unsigned v;
  int used;
  while (sscanf(text, "%2x%n", &v, &used) == 1) {
    out.push_back(static_cast<uint8_t>(v));
    text += used;
  }
  return out;
}

struct Row {
  const char* bytes;
  const char* text;
  Op op;
  unsigned size;
  Execute execute;
};

constexpr Op kLoad = Op::kLoad, kStore = Op::kStore, kRmw = Op::kRmw;
constexpr Execute kEmulate = Execute::kEmulate, kDisplace = Execute::kDisplace, kStep = Execute::kStep,
                  kString = Execute::kString;

const Row kRows[] = {
    // 3.01: stores that Capstone shows as reads
    {"c5f81100", "vmovups [rax],xmm0", kStore, 16, kDisplace},
    {"c5fa7f00", "vmovdqu [rax],xmm0", kStore, 16, kDisplace},
    {"c5fe7f00", "vmovdqu [rax],ymm0", kStore, 32, kDisplace},
    {"62f17f487f00", "vmovdqu8 [rax],zmm0", kStore, 64, kDisplace},
    {"62f1ff297f00", "vmovdqu16 [rax]{k1},ymm0", kStore, 32, kDisplace},
    {"62f17e487f00", "vmovdqu32 [rax],zmm0", kStore, 64, kDisplace},
    {"62f1fe487f00", "vmovdqu64 [rax],zmm0", kStore, 64, kDisplace},
    {"0f1100", "movups [rax],xmm0", kStore, 16, kDisplace},
    {"660f7f00", "movdqa [rax],xmm0", kStore, 16, kDisplace},
    {"660fd600", "movq [rax],xmm0", kStore, 8, kDisplace},
    {"c5f9d600", "vmovq [rax],xmm0", kStore, 8, kDisplace},
    {"c5f97e00", "vmovd [rax],xmm0", kStore, 4, kDisplace},
    {"c5fa1100", "vmovss [rax],xmm0", kStore, 4, kDisplace},
    {"c5fb1100", "vmovsd [rax],xmm0", kStore, 8, kDisplace},
    {"660f1700", "movhpd [rax],xmm0", kStore, 8, kDisplace},
    {"660f1300", "movlpd [rax],xmm0", kStore, 8, kDisplace},
    {"480fc300", "movnti [rax],rax", kStore, 8, kDisplace},
    {"0fc300", "movnti [rax],eax", kStore, 4, kDisplace},
    {"660fe700", "movntdq [rax],xmm0", kStore, 16, kDisplace},
    {"c5fde700", "vmovntdq [rax],ymm0", kStore, 32, kDisplace},
    {"c4e37d190001", "vextractf128 [rax],ymm0,1", kStore, 16, kDisplace},
    {"c4e37d390001", "vextracti128 [rax],ymm0,1", kStore, 16, kDisplace},
    {"62f3fd483b0001", "vextracti64x4 [rax],zmm0,1", kStore, 32, kDisplace},
    {"660f3a140001", "pextrb [rax],xmm0,1", kStore, 1, kDisplace},
    {"660f3a150001", "pextrw [rax],xmm0,1", kStore, 2, kDisplace},
    {"66480f3a160001", "pextrq [rax],xmm0,1", kStore, 8, kDisplace},
    {"c4e2758e00", "vpmaskmovd [rax],ymm1,ymm0", kStore, 32, kDisplace},
    {"c4e2752f00", "vmaskmovpd [rax],ymm1,ymm0", kStore, 32, kDisplace},
    {"c4e37d1d0000", "vcvtps2ph [rax],ymm0,0", kStore, 16, kDisplace},
    {"62f27e483100", "vpmovdb [rax],zmm0", kStore, 16, kDisplace},
    {"62f27d498b00", "vpcompressd [rax]{k1},zmm0", kStore, 64, kDisplace},
    {"62f27d49a00408", "vpscatterdd [rax+zmm1]{k1},zmm0", kStore, 4, kDisplace},
    {"0f38f100", "movbe [rax],eax", kStore, 4, kDisplace},
    {"dd18", "fstp qword [rax]", kStore, 8, kDisplace},
    // 3.02, 3.03
    {"f0480fb10b", "lock cmpxchg [rbx],rcx", kRmw, 8, kEmulate},
    {"0fb00b", "cmpxchg [rbx],cl", kRmw, 1, kEmulate},
    {"0fc70b", "cmpxchg8b [rbx]", kRmw, 8, kEmulate},
    {"f0480fc70b", "lock cmpxchg16b [rbx]", kRmw, 16, kEmulate},
    {"c10003", "rol dword [rax],3", kRmw, 4, kDisplace},
    {"f70001000000", "test dword [rax],1", kLoad, 4, kEmulate},
    {"f60001", "test byte [rax],1", kLoad, 1, kEmulate},
    // 3.04
    {"f3a7", "repe cmpsd", kLoad, 4, kString},
    {"62f1fe496f00", "vmovdqu64 zmm0{k1},[rax]", kLoad, 64, kDisplace},
    {"62f27d49900408", "vpgatherdd zmm0{k1},[rax+zmm1]", kLoad, 4, kDisplace},
    {"62f27d498900", "vpexpandd zmm0{k1},[rax]", kLoad, 64, kDisplace},
    {"660f3a0b0000", "roundsd xmm0,[rax],0", kLoad, 8, kDisplace},
    // 3.06
    {"660f2f00", "comisd xmm0,[rax]", kLoad, 8, kDisplace},
    {"62f17e095800", "vaddss xmm0{k1},xmm0,[rax]", kLoad, 4, kDisplace},
    {"0fae00", "fxsave [rax]", kStore, 512, kStep},
    {"62f17c585800", "vaddps zmm0,zmm0,[rax]{1to16}", kLoad, 4, kDisplace},
    {"f266af", "repne scasw", kLoad, 2, kString},
    // 3.07
    {"62f27d483000", "vpmovzxbw zmm0,[rax]", kLoad, 32, kDisplace},
    {"62f27e283000", "vpmovwb [rax],ymm0", kStore, 16, kDisplace},
    {"62f3757f3f0000", "vpcmpb k0{k7},zmm1,[rax],0 (b set)", kLoad, 1, kDisplace},
    {"62f17d287400", "vpcmpeqb k0,ymm0,[rax]", kLoad, 32, kDisplace},
    {"62f37d203e0006", "vpcmpub k0,ymm16,[rax],6", kLoad, 32, kDisplace},
    {"62f27d202600", "vptestmb k0,ymm16,[rax]", kLoad, 32, kDisplace},
    {"62f37d482500ff", "vpternlogd zmm0,zmm0,[rax],255", kLoad, 64, kDisplace},
    {"62f27d29900408", "vpgatherdd ymm0{k1},[rax+ymm1]", kLoad, 4, kDisplace},
    {"c4e1f89000", "kmovq k0,[rax]", kLoad, 8, kDisplace},
    {"c4e1f99100", "kmovd [rax],k0", kStore, 4, kDisplace},
    {"62f37d48440000", "vpclmulqdq zmm0,zmm0,[rax],0", kLoad, 64, kDisplace},
    {"62f27d48dc00", "vaesenc zmm0,zmm0,[rax]", kLoad, 64, kDisplace},
    {"62f27d485500", "vpopcntd zmm0,[rax]", kLoad, 64, kDisplace},
    {"62f27d488d00", "vpermb zmm0,zmm0,[rax]", kLoad, 64, kDisplace},
    {"62f27d485000", "vpdpbusd zmm0,zmm0,[rax]", kLoad, 64, kDisplace},
    {"62f57c485800", "vaddph zmm0,zmm0,[rax]", kLoad, 64, kDisplace},
    {"62f27d48cf00", "vgf2p8mulb zmm0,zmm0,[rax]", kLoad, 64, kDisplace},
    // control flow, division, stack
    {"ff10", "call [rax]", kLoad, 8, kStep},
    {"ff20", "jmp [rax]", kLoad, 8, kStep},
    {"48f730", "div qword [rax]", kLoad, 8, kStep},
    {"ff30", "push qword [rax]", kLoad, 8, kDisplace},
    {"8f00", "pop qword [rax]", kStore, 8, kDisplace},
    {"668f00", "pop word [rax]", kStore, 2, kDisplace},
    // odd prefixes
    {"f3480fb800", "popcnt rax,[rax]", kLoad, 8, kDisplace},
    {"66f20f38f100", "crc32 eax,word [rax]", kLoad, 2, kDisplace},
    {"48668b00", "REX before 66 does not count", kLoad, 2, kEmulate},
    {"2e3e668b00", "segments of the past", kLoad, 2, kEmulate},
    {"6748a1785634123456789a", "mov rax,[moffs32]", kLoad, 8, kEmulate},
    {"48a1785634127856341200", "mov rax,[moffs64]", kLoad, 8, kEmulate},
};

TEST(Decode, DirectionSizeExecution) {
  for (const Row& row : kRows) {
    std::vector<uint8_t> bytes = parse(row.bytes);
    bytes.resize(15);
    Instruction in;
    ASSERT_TRUE(decode(bytes.data(), bytes.size(), &in)) << row.text;
    EXPECT_TRUE(in.touches_memory) << row.text;
    EXPECT_EQ(row.op, in.op) << row.text;
    EXPECT_EQ(row.size, in.size) << row.text;
    EXPECT_EQ(row.execute, in.execute) << row.text;
  }
}

Instruction decoded(const char* text) {
  std::vector<uint8_t> bytes = parse(text);
  Instruction in;
  EXPECT_TRUE(decode(bytes.data(), bytes.size(), &in)) << text;
  EXPECT_EQ(bytes.size(), in.length) << text;
  return in;
}

// 3.05: an address, but no access.
TEST(Decode, HintsTouchNothing) {
  for (const char* text :
       {"488d4008", "0f1808", "0f0d08", "0f1f4000", "660f1f440000", "0f1c00", "0fae38", "660fae30"}) {
    Instruction in = decoded(text);
    EXPECT_FALSE(in.touches_memory) << text;
    TouchedRuns runs;
    find_touched(in, CpuState{}, &runs);
    EXPECT_EQ(0u, runs.count) << text;
  }
}

TEST(Decode, InvalidAndCutBytes) {
  for (const char* text : {"06", "27", "62f1", "c5f8", "488b", "48c7", "0f", "0f38", "66c5f81100", "f362f17f487f00"}) {
    std::vector<uint8_t> bytes = parse(text);
    Instruction in;
    EXPECT_FALSE(decode(bytes.data(), bytes.size(), &in)) << text;
  }
  // More than 15 bytes: prefixes alone.
  uint8_t prefixes[16];
  memset(prefixes, 0x66, sizeof(prefixes));
  prefixes[15] = 0x90;
  Instruction in;
  EXPECT_FALSE(decode(prefixes, sizeof(prefixes), &in));
  // Never reads past what is available: each cut of each row fails, or is shorter.
  for (const Row& row : kRows) {
    std::vector<uint8_t> bytes = parse(row.bytes);
    Instruction whole;
    if (!decode(bytes.data(), bytes.size(), &whole)) continue;
    for (size_t n = 0; n < whole.length; ++n) EXPECT_FALSE(decode(bytes.data(), n, &in)) << row.text << " cut to " << n;
  }
}

TEST(Decode, UnknownFormsStep) {
  Instruction in = decoded("0f01f8");  // swapgs
  EXPECT_FALSE(in.touches_memory);
  in = decoded("0fae20");  // xsave [rax]
  EXPECT_TRUE(in.touches_memory);
  EXPECT_EQ(0u, in.size);
  EXPECT_EQ(Execute::kStep, in.execute);
  EXPECT_FALSE(can_displace(in));
}

TEST(Operand, CompressedDisplacement) {
  EXPECT_EQ(64, decoded("62f1fe486f4001").displacement);     // vmovdqu64 zmm, full
  EXPECT_EQ(-32, decoded("62f1fe286f40ff").displacement);    // ymm
  EXPECT_EQ(4, decoded("62f17c58584001").displacement);      // broadcast
  EXPECT_EQ(32, decoded("62f27d48304001").displacement);     // vpmovzxbw, half
  EXPECT_EQ(8, decoded("62f27d48224008").displacement / 8);  // vpmovsxbq, eighth
  EXPECT_EQ(4, decoded("62f27d498b4001").displacement);      // vpcompressd, element
  EXPECT_EQ(4, decoded("62f27d4990440801").displacement);    // gather, element
  EXPECT_EQ(1, decoded("c5fe6f4001").displacement);          // VEX: none
  EXPECT_EQ(256, decoded("62f1fe486f8000010000").displacement);
}

TEST(Operand, SpecialAddresses) {
  CpuState state;
  state.rip = 0x1000;
  state.fs_base = 0x500000;
  for (int i = 0; i < 16; ++i) state.gpr[i] = 0x10000u * static_cast<unsigned>(i + 1);
  EXPECT_EQ(0x1000u + 7 + 0x20, effective_address(decoded("488b0520000000"), state));  // rip
  EXPECT_EQ(0x500000u - 8, effective_address(decoded("64488b0425f8ffffff"), state));   // fs, negative
  state.gpr[0] = 0xffffffff00000010;
  EXPECT_EQ(0x14u, effective_address(decoded("678b4004"), state));  // 67
  state.gpr[0] = static_cast<uint64_t>(-1);
  EXPECT_EQ(0x40000u - 8, effective_address(decoded("480fa303"), state));  // bt [rbx],rax: bit -1
  EXPECT_EQ(0x40000u - 4, effective_address(decoded("0fa303"), state));
  state.gpr[0] = 0x1000;
  EXPECT_EQ(0x40000u + 0x200, effective_address(decoded("0fb303"), state));      // btr
  EXPECT_EQ(0x40000u, effective_address(decoded("0fba6b1f1f"), state) - 0x1f);   // bts [rbx+31],31
  EXPECT_EQ(0x50000u + 8 + 8, effective_address(decoded("8f442408"), state));    // pop [rsp+8]
  EXPECT_EQ(0x50000u + 2 + 8, effective_address(decoded("668f442408"), state));  // pop word
  EXPECT_EQ(0x50000u + 8, effective_address(decoded("ff742408"), state));        // push [rsp+8]
  state.gpr[0] = 0x1234;
  EXPECT_EQ(0x40000u + 0x34, effective_address(decoded("d7"), state));  // xlat
}

// Vector and mask registers as the kernel puts them into a signal frame.
TEST(Operand, RegistersOfTheSignalFrame) {
  if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
  set_up_machine();
  init_xstate_layout();
  Random random(seed());
  const uint8_t breakpoint[] = {0xcc};
  for (int round = 0; round < 4; ++round) {
    MachineState state;
    randomize(random, &state);
    if (round == 1) memset(state.k, 0, sizeof(state.k));  // components in their initial state
    if (round == 2) memset(state.zmm + 16, 0, 16 * 64);
    if (round == 3) {
      for (auto& zmm : state.zmm) memset(zmm + 16, 0, 48);
    }
    MachineState expected = state;
    ASSERT_EQ(Outcome::kOther, run_native(breakpoint, 1, &state).outcome);
    for (unsigned i = 0; i < 32; ++i) {
      uint8_t vector[64];
      read_vector(last_frame(), i, 64, vector);
      EXPECT_EQ(0, memcmp(expected.zmm[i], vector, 64)) << "zmm" << i << " round " << round;
    }
    for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(expected.k[i], read_mask(last_frame(), i)) << "k" << i;
  }
}

// The stack half of PUSH and POP stays where it is; the memory half moves to the twin.
TEST(Displace, PushAndPopThroughTheHeap) {
  if (!machine_supported()) GTEST_SKIP() << "no AVX-512 or no wrgsbase";
  set_up_machine();
  uint64_t target = reinterpret_cast<uint64_t>(g_heap) + 128;
  for (const char* text : {"8f8424", "ffb424", "668f8424", "66ffb424"}) {
    std::vector<uint8_t> bytes = parse(text);
    bool pop = bytes[bytes.size() - 3] == 0x8f;
    unsigned size = bytes[0] == 0x66 ? 2 : 8;
    MachineState state{};
    state.mxcsr = 0x1f80;
    state.rflags = 0x202;
    state.gpr[4] = reinterpret_cast<uint64_t>(g_outside) + 512;
    uint32_t displacement = static_cast<uint32_t>(target - state.gpr[4] - (pop ? size : 0));
    const uint8_t* d = reinterpret_cast<const uint8_t*>(&displacement);
    bytes.insert(bytes.end(), d, d + 4);
    Instruction in;
    ASSERT_TRUE(decode(bytes.data(), bytes.size(), &in));
    EXPECT_EQ(target, effective_address(in, cpu_state(state)));
    uint64_t heap_value = 0x1122334455667788, stack_value = 0x99aabbccddeeff00;
    memcpy(twin() + 128, &heap_value, 8);
    memcpy(g_outside + 512, &stack_value, 8);
    uint8_t copy[kMaxDisplaced];
    size_t n = write_displaced(in, native_exit(), copy);
    ASSERT_NE(0u, n);
    protect(g_heap, 0, kPages, 0);
    MachineState actual = state;
    NativeResult r = run_displaced(copy, n, g_twin_distance, &actual);
    protect(g_heap, 0, kPages, 3);
    EXPECT_EQ(Outcome::kCompleted, r.outcome) << text;
    EXPECT_EQ(state.gpr[4] + (pop ? size : -static_cast<uint64_t>(size)), actual.gpr[4]) << text;
    const uint8_t* moved = pop ? twin() + 128 : g_outside + 512 - size;
    EXPECT_EQ(0, memcmp(moved, pop ? &stack_value : &heap_value, size)) << text;
  }
}

TEST(Displace, WhatCannotBeCopied) {
  EXPECT_FALSE(can_displace(decoded("ff10")));              // call
  EXPECT_FALSE(can_displace(decoded("48f730")));            // div
  EXPECT_FALSE(can_displace(decoded("64488b00")));          // fs
  EXPECT_FALSE(can_displace(decoded("65488b00")));          // gs
  EXPECT_FALSE(can_displace(decoded("c5f8100520000000")));  // rip-relative
  EXPECT_FALSE(can_displace(decoded("f3a4")));              // string
  EXPECT_TRUE(can_displace(decoded("488b00")));
  // 15 bytes: no room for the prefix, unless one can be left out.
  EXPECT_FALSE(can_displace(decoded("6767f0488184247856341278563412")));
  EXPECT_TRUE(can_displace(decoded("3e67f0488184247856341278563412")));
  Instruction in = decoded("3ec5f81100");
  uint8_t copy[kMaxDisplaced];
  ASSERT_EQ(5u + 14, write_displaced(in, 0x1122334455667788, copy));
  EXPECT_EQ(
      "65c5f81100ff2500000000"
      "8877665544332211",
      hex(copy, 19));
  EXPECT_EQ(5u, displaced_jump_offset(in));
}

TEST(FlagLiveness, NullChecksAndComparisons) {
  auto dead = [](const char* text) {
    std::vector<uint8_t> bytes = parse(text);
    return flags_are_dead_after(bytes.data(), bytes.size());
  };
  EXPECT_TRUE(dead("488b4010c3"));               // mov; ret
  EXPECT_TRUE(dead("e800000000"));               // call
  EXPECT_TRUE(dead("ffe0"));                     // jmp rax
  EXPECT_TRUE(dead("90904831c0"));               // nops; xor
  EXPECT_TRUE(dead("c5fa10004883c408"));         // vmovss; add rsp,8
  EXPECT_FALSE(dead("7402c3"));                  // je
  EXPECT_FALSE(dead("488b40100f8400000000c3"));  // mov; je near
  EXPECT_FALSE(dead("0f94c0c3"));                // sete
  EXPECT_FALSE(dead("480f44c1c3"));              // cmove
  EXPECT_FALSE(dead("4811c8c3"));                // adc
  EXPECT_FALSE(dead("9cc3"));                    // pushf
  EXPECT_FALSE(dead("ffc0c3"));                  // inc keeps CF: not followed
  EXPECT_FALSE(dead("d3e0c3"));                  // shl by cl may keep them
  EXPECT_FALSE(dead("9090"));                    // ends before it is known
  EXPECT_FALSE(dead("06"));                      // no instruction
}

}  // namespace
}  // namespace classaccess::test
