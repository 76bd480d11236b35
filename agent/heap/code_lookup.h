// What code is at this PC: interpreter, nmethod (C1/C2) with its inlined method and
// bytecode index, stub, libjvm or another library. Read from the VM's own code
// cache at fault time, so no event can come late.
// Context: signal handler; reads VM memory by safe loads only.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/heap/method_table.h"
#include "agent/heap/vm_layout.h"
#include "classaccess/record.h"

namespace classaccess {

struct CodeSite {
  SiteKind kind = SiteKind::kNative;
  uint64_t nmethod = 0;                // kC1, kC2: the nmethod
  int32_t compile_id = 0;              // identifies it: a recycled address has another one
  const MethodInfo* method = nullptr;  // innermost inlined method, or the interpreted one
  int32_t bci = -1;
  // The bytecode at bci as in the class file, but for the interpreter's pairs, which stay:
  // 221 to 223 (aload_0 and getfield) and 226 (iload and caload). 0: unknown.
  uint8_t bytecode = 0;
  // kStub: CodeBlob::_name, copied (lives for ever). "native nmethod" has a method too.
  const char* stub_name = nullptr;
};

// new, newarray, anewarray, multianewarray (JVM specification 6.5).
inline bool creates_object(uint8_t bytecode) {
  return bytecode == 187 || bytecode == 188 || bytecode == 189 || bytecode == 197;
}

class CodeLookup {
 public:
  bool create(MethodTable* methods, const VmLayout* layout);

  // `rbp` and `r13` of the faulting context serve the interpreter's frame:
  // Method* at rbp-24, bytecode pointer in r13 (cpu/x86/frame_x86.hpp).
  CodeSite lookup(uint64_t pc, uint64_t rbp, uint64_t r13);

  // Cheap check that a cached answer still holds: same compile id at `nmethod`.
  bool still_valid(const CodeSite& site) const;

 private:
  void interpreted(uint64_t rbp, uint64_t r13, CodeSite* site);
  void in_blob(uint64_t blob, uint64_t pc, CodeSite* site);
  bool scope_at(uint64_t nmethod, uint64_t pc, uint64_t* method, int32_t* bci) const;
  uint64_t find_blob(uint64_t pc) const;
  uint8_t bytecode_at(const MethodInfo& method, int32_t bci) const;
  const char* keep_name(uint64_t text);

  static constexpr uint32_t kMaxNames = 4096;
  MethodTable* methods_ = nullptr;
  const VmLayout* layout_ = nullptr;
  Arena names_;
  std::atomic<const char*>* known_names_ = nullptr;  // open addressing by content
};

}  // namespace classaccess
