// A hook's row, its stub and the copy of its first instructions. Nothing is patched yet.
// Context: no signal handler, one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "agent/calls/native/prologue.h"

namespace classaccess {

// `low`, `high`: the code of its library. "" and the row's id, which may be one made earlier; or why it cannot be
// hooked.
std::string make_hook(uint64_t low, uint64_t high, const FunctionCode& code, uint32_t* id);

}  // namespace classaccess
