// What code is at this PC: interpreter, nmethod (C1/C2) with its inlined method and
// bytecode index, stub, libjvm or another library. Read from the VM's own code
// cache at fault time, so no event can come late.
// Context: signal handler; reads VM memory by safe loads only.
#pragma once

#include <cstdint>

#include "agent/heap/method_table.h"
#include "agent/heap/vm_layout.h"
#include "classaccess/record.h"

namespace classaccess {

struct CodeSite {
  SiteKind kind = SiteKind::kNative;
  uint64_t nmethod = 0;       // kC1, kC2: the nmethod
  int32_t compile_id = 0;     // identifies it: a recycled address has another one
  const MethodInfo* method = nullptr;  // innermost inlined method, or the interpreted one
  int32_t bci = -1;
  const char* stub_name = nullptr;  // kStub: CodeBlob::_name, copied (lives for ever)
};

class CodeLookup {
 public:
  bool create(MethodTable* methods, const VmLayout* layout);

  // `rbp` and `r13` of the faulting context serve the interpreter's frame:
  // Method* at rbp-24, bytecode pointer in r13 (cpu/x86/frame_x86.hpp).
  CodeSite lookup(uint64_t pc, uint64_t rbp, uint64_t r13);

  // Cheap check that a cached answer still holds: same compile id at `nmethod`.
  bool still_valid(const CodeSite& site) const;

 private:
  MethodTable* methods_ = nullptr;
  const VmLayout* layout_ = nullptr;
  Arena names_;
};

}  // namespace classaccess
