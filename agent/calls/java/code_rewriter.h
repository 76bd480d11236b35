// One method's Code attribute with calls of ours at its entry, before each return and, by handlers behind its
// code, for each exception that leaves it.
//
//     enter(id); BODY, with { leave(id); return } for each return; handler: { thrown(id); athrow }
//
// The calls take a constant and return nothing, so neither locals nor the frames of the method's own code change:
// only positions move. The handler's frame knows no local and the exception. The return sequences are in no range of
// ours: a call that has left does not leave again.
// A constructor is entered when its object is initialised, behind the call of super(...) or this(...): HotSpot accepts
// no handler around that (verifier.cpp, verify_exception_handler_targets: the frame behind the call, with the flag of
// the one before it), so a call that began earlier would not end if it throws.
// Context: as class_bytes.h.
#pragma once

#include <cstdint>
#include <string>

#include "agent/calls/java/constant_pool.h"

namespace classaccess {

// Entries of the class's constant pool.
struct ProbeEntries {
  uint16_t enter = 0, leave = 0, thrown = 0;  // methods (I)V
  uint16_t throwable = 0;                     // class
  uint16_t stack_map_table = 0;               // name
};

struct MethodCode {
  Bytes attribute;  // contents of the Code attribute, behind its length
  uint16_t class_major = 0;
  bool constructor = false;  // an <init> whose `this` is not initialised at its start: any but Object's
  uint16_t id_constant = 0;  // the function's id, an Integer in the pool
};

// Appends the new contents. Empty string, or why the method cannot be rewritten, a word for `function.refused`;
// then nothing is appended.
std::string rewrite_code(const MethodCode& method, const ConstantPool& pool, const ProbeEntries& entries,
                         ByteWriter* out);

}  // namespace classaccess
