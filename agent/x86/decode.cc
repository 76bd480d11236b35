#include "agent/x86/decode.h"

namespace classaccess {

bool decode(const uint8_t*, size_t, Instruction*) { return false; }

}  // namespace classaccess
