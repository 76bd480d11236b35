// The table behind the decoder: which memory forms exist and what they do.
// Context: any; constant data. Used by decode.cc and, to enumerate forms, by tests/x86.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/x86/instruction.h"

namespace classaccess {

// Set of encodings a form has.
enum FormEncoding : uint8_t { kFormLegacy = 1, kFormVex = 2, kFormEvex = 4 };

enum class Prefix : uint8_t { kNone = 0, k66, kF3, kF2, kAny };

// Operand sizes that depend on the encoding; smaller values are bytes, but 512
// does not fit and has a code of its own.
enum FormSize : uint8_t {
  kSizeOperand = 200,  // 2, 4, 8
  kSizeWide,           // 4 or 8 by W
  kSizeStack,          // 8, or 2 with 66
  kSizeVector,
  kSizeHalf,
  kSizeQuarter,
  kSizeEighth,
  kSizeElement,
  kSizeDup,  // MOVDDUP: 8 at 128 bits, else the vector
  kSize512,
};

enum FormElement : uint8_t {
  kElement4or8 = 100,  // by W
  kElement1or2,        // by W
};

enum class FormTouch : uint8_t {
  kWhole,
  kLanes,
  kBroadcastLanes,
  kPacked,
  kIndexed,
  kVectorMask,
  kByteMask,
  kBitString
};

enum class FormOp : uint8_t { kLoad = 0, kStore, kRmw, kNone };

struct Form {
  uint8_t encodings;
  OpcodeMap map;
  uint8_t first, last;  // opcodes
  Prefix prefix;
  int8_t digit;  // ModRM.reg, -1 any
  int8_t w;      // -1 any
  FormOp op;
  uint8_t size;     // bytes or FormSize
  uint8_t element;  // bytes or FormElement
  FormTouch touch;
  Execute execute;
};

extern const Form* const kFormTable;
extern const size_t kFormCount;

// The first form that fits, or nullptr. `encoding`, `prefix`, `digit` (0..7), `w` as decoded.
const Form* find_form(Encoding encoding, OpcodeMap map, uint8_t opcode, Prefix prefix, unsigned digit, bool w);

}  // namespace classaccess
