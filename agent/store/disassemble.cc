#include "agent/store/disassemble.h"

#include <capstone/capstone.h>
#include <stdio.h>

namespace classaccess {

Disassembler::Disassembler() {
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) != CS_ERR_OK) handle_ = 0;
}

Disassembler::~Disassembler() {
  if (handle_ != 0) cs_close(&handle_);
}

std::string Disassembler::text(uint64_t pc, const uint8_t* bytes, size_t length) {
  std::string out;
  if (length == 0) return out;
  if (handle_ != 0) {
    cs_insn* decoded = nullptr;
    size_t count = cs_disasm(handle_, bytes, length, pc, 1, &decoded);
    if (count == 1 && decoded->size == length) {
      out = decoded->mnemonic;
      if (decoded->op_str[0] != '\0') out = out + " " + decoded->op_str;
    }
    if (count > 0) cs_free(decoded, count);
  }
  if (out.empty()) {
    out = "(bytes)";
    for (size_t i = 0; i < length; ++i) {
      char hex[4];
      snprintf(hex, sizeof(hex), " %02x", bytes[i]);
      out += hex;
    }
  }
  return out;
}

}  // namespace classaccess
