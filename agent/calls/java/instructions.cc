#include "agent/calls/java/instructions.h"

namespace classaccess::bytecode {
namespace {

// By opcode; 0: not of fixed length.
constexpr uint8_t kLengths[kLast + 1] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 2, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2,
    0, 0, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 5, 5, 3, 2, 3, 1, 1, 3, 3, 1, 1, 0, 4, 3, 3, 5, 5};
static_assert(kLengths[kLdcW] == 3 && kLengths[kIinc] == 3 && kLengths[kRet] == 2 && kLengths[kReturnFirst] == 1 &&
              kLengths[kInvokeStatic] == 3 && kLengths[kNew] == 3 && kLengths[kWide] == 0 && kLengths[kJsrW] == 5);

uint64_t switch_length(Bytes code, uint32_t pc) {
  ByteReader reader(code);
  reader.skip(pc + 1 + switch_padding(pc));
  reader.skip(4);  // default
  if (code[pc] == kLookupSwitch) {
    int32_t pairs = reader.s4();
    if (!reader.ok() || pairs < 0) return 0;
    return reader.at() - pc + 8ull * static_cast<uint32_t>(pairs);
  }
  int64_t low = reader.s4(), high = reader.s4();
  if (!reader.ok() || low > high) return 0;
  return reader.at() - pc + 4ull * static_cast<uint64_t>(high - low + 1);
}

}  // namespace

uint32_t length_at(Bytes code, uint32_t pc) {
  const uint8_t opcode = code[pc];
  if (opcode > kLast) return 0;
  uint64_t length = kLengths[opcode];
  if (opcode == kWide) {
    if (pc + 1 >= code.size()) return 0;
    length = code[pc + 1] == kIinc ? 6 : 4;
  } else if (length == 0) {
    length = switch_length(code, pc);
  }
  return length <= code.size() - pc ? static_cast<uint32_t>(length) : 0;
}

}  // namespace classaccess::bytecode
