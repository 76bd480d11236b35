// Every form of the decoder's table as concrete instructions: enumerated, then made
// legal for this CPU by trial, with random registers, masks and addressing.
#pragma once

#include <string>
#include <vector>

#include "agent/x86/forms.h"
#include "tests/x86/native.h"

namespace classaccess::test {

// One row of the table under one encoding, opcode, prefix, W and vector length.
struct Variant {
  size_t row;
  const Form* form;
  Encoding encoding;
  uint8_t opcode;
  Prefix prefix;
  int digit;  // ModRM.reg if the opcode is a group, else -1
  bool w;
  unsigned length;  // 0, 1, 2: 128, 256, 512 bits
  std::string name() const;
};

// All that the decoder resolves to this row.
std::vector<Variant> all_variants();

// What instructions of this variant may have besides plain operands.
struct Legal {
  bool any = false;
  bool vvvv = false, mask = false, no_mask = false, zeroing = false, broadcast = false, lock = false;
};
// Found by running it (operand in ordinary memory). Not called for forms that only step.
Legal find_legal(const Variant& variant, Random& random);

// An instruction and the state it runs in.
struct Case {
  uint8_t bytes[32];
  size_t length = 0;
  Instruction decoded;
  MachineState state;
};

struct Wish {
  bool plain = false;      // no mask, no broadcast
  bool addressing = true;  // all addressing modes; else [base+disp]
};

// A case whose memory operand is at `address` (for gathers: base of small indexes).
// False if the draw does not work out; draw again.
bool make_case(const Variant& variant, const Legal& legal, const Wish& wish, uint64_t address, Random& random,
               Case* out);

// False for forms that are single-stepped always.
bool runnable(const Variant& variant);

// PUSH [m] and POP [m]: RSP is in g_outside.
bool moves_stack(const Variant& variant);

// Not every value may be loaded: MXCSR, selectors.
bool needs_quiet_memory(const Variant& variant);
// Memory that the form can load.
void fill_memory(const Variant& variant, Random& random, uint8_t* to, size_t bytes);

}  // namespace classaccess::test
