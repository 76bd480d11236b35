// The registers of an interrupted context, in ModRM order, as the x86 layer wants them.
// Context: signal handler.
#pragma once

#include <ucontext.h>

#include <cstdint>

#include "agent/base/thread_offset.h"
#include "agent/x86/instruction.h"

namespace classaccess {

// ucontext's index of each register.
inline constexpr int kGregs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

inline void read_context(const ucontext_t* uc, CpuState* cpu) {
  for (int i = 0; i < 16; ++i) cpu->gpr[i] = static_cast<uint64_t>(uc->uc_mcontext.gregs[kGregs[i]]);
  cpu->rip = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
  cpu->rflags = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_EFL]);
  cpu->fs_base = fs_base();
  cpu->fpstate = uc->uc_mcontext.fpregs;
}

inline void write_context(const CpuState& cpu, ucontext_t* uc) {
  for (int i = 0; i < 16; ++i) uc->uc_mcontext.gregs[kGregs[i]] = static_cast<greg_t>(cpu.gpr[i]);
  uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(cpu.rip);
  uc->uc_mcontext.gregs[REG_EFL] = static_cast<greg_t>(cpu.rflags);
}

}  // namespace classaccess
