// A decoded x86-64 instruction, as far as the executor needs it: length, memory
// operand, how it touches memory and how it is executed.
// Context: plain data; made by decode() in the signal handler.
#pragma once

#include <cstdint>

#include "classaccess/record.h"

namespace classaccess {

// Register numbers as in ModRM/SIB: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp, 5 rbp,
// 6 rsi, 7 rdi, 8..15 r8..r15.
constexpr uint8_t kNoReg = 0xff;
constexpr uint8_t kRip = 0xfe;

enum class Encoding : uint8_t { kLegacy, kVex, kEvex };
enum class OpcodeMap : uint8_t { k1Byte = 0, k0F = 1, k0F38 = 2, k0F3A = 3, kMap5 = 5, kMap6 = 6 };

// How the handler performs the instruction.
enum class Execute : uint8_t {
  kEmulate,   // in the handler, on the twin view (emulate.h)
  kString,    // MOVS/STOS/LODS/CMPS/SCAS, REP or not, as a whole (string_ops.h)
  kDisplace,  // a copy with a GS prefix whose base is the twin distance (displace.h)
  kStep,      // single step with the key open: control flow through memory, DIV, unknown
};

// Which bytes of the memory operand are really touched (operand.h). A masked-off
// lane neither faults nor counts (Intel SDM vol. 2, "Exception type E4, E6, E12").
enum class Touch : uint8_t {
  kWhole,       // `size` bytes at the effective address
  kLanes,       // EVEX mask: lane i of element_bytes if mask bit i (modulo the lanes in memory) is set
  kPacked,      // EVEX compress, expand: as many elements as mask bits, from the effective address up
  kIndexed,     // gather, scatter: one element a lane, where its index points
  kVectorMask,  // VEX maskmov: lanes whose element of register vvvv has its sign bit set
  kByteMask,    // MASKMOVDQU, MASKMOVQ: bytes whose byte of register rm has its sign bit set
  kBitString,   // BT, BTS, BTR, BTC with a register: the operand-sized word that holds the bit
};

struct Instruction {
  uint8_t length = 0;
  uint8_t bytes[15] = {};
  Encoding encoding = Encoding::kLegacy;
  OpcodeMap map = OpcodeMap::k1Byte;
  uint8_t opcode = 0;
  uint8_t modrm = 0, sib = 0;
  bool has_modrm = false, has_memory = false;

  // Prefixes.
  bool lock = false, rep = false, repne = false, operand16 = false, address32 = false;
  bool rex = false, rex_w = false;
  uint8_t segment = 0;  // 0, 0x64 (FS) or 0x65 (GS); others are ignored in 64-bit mode

  // Registers, with REX/VEX/EVEX extension bits applied.
  uint8_t reg = 0;   // ModRM.reg, 0..31
  uint8_t rm = 0;    // ModRM.rm when a register
  uint8_t vvvv = 0;  // VEX/EVEX second source
  uint8_t mask = 0;  // EVEX aaa
  bool zeroing = false, broadcast = false;
  uint8_t vector_bytes = 0;  // 16, 32, 64 for VEX/EVEX (L'L), 16 for SSE, else 0

  // Memory operand: base + index * scale + displacement.
  uint8_t base = kNoReg, index = kNoReg, scale = 1;
  bool vsib = false;         // index is a vector register (gather, scatter)
  int64_t displacement = 0;  // disp8*N already applied
  uint64_t immediate = 0;    // sign-extended as the instruction uses it

  // What it does to memory.
  Op op = Op::kLoad;
  uint16_t size = 0;          // bytes of the operand (per iteration or per lane where those vary)
  uint8_t operand_bytes = 0;  // integer operand size 1, 2, 4, 8; 0 for vectors
  uint8_t element_bytes = 0;  // bytes of a lane in memory, of a broadcast element, of a string element
  uint8_t mask_lanes = 0;     // lanes that the mask governs (kLanes, kPacked, kIndexed, kVectorMask)
  uint8_t index_bytes = 0;    // 4 or 8: bytes of one index of a gather or scatter
  Touch touch = Touch::kWhole;
  // Implicit stack accesses do not count. CLFLUSH and CLWB fault like loads but transfer
  // nothing: false, with Execute::kDisplace.
  bool touches_memory = false;     // false for LEA, NOP, PREFETCH, CLFLUSH ...
  bool writes_flags_only = false;  // CMP, TEST, BT with a plain load
  Execute execute = Execute::kStep;
};

// The integer registers and flags of an interrupted context, in ModRM order.
// A view on ucontext's gregs: the fault layer copies in and out.
struct CpuState {
  uint64_t gpr[16] = {};
  uint64_t rip = 0;
  uint64_t rflags = 0;
  uint64_t fs_base = 0;
  const void* fpstate = nullptr;  // the frame's XSAVE image, for vector index and mask registers; may be null
};

}  // namespace classaccess
