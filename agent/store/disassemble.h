// The text of one instruction for `site.instruction`.
// Context: writer thread (Capstone allocates and formats).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace classaccess {

class Disassembler {
 public:
  Disassembler();
  ~Disassembler();
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

  // Intel syntax; "(bytes) 62 f1 .." where Capstone does not know the instruction or
  // takes it for one of another length; "" without bytes.
  std::string text(uint64_t pc, const uint8_t* bytes, size_t length);

 private:
  size_t handle_ = 0;  // csh
};

}  // namespace classaccess
