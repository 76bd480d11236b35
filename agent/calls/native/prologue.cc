#include "agent/calls/native/prologue.h"

#include <string.h>

#include "agent/calls/native_hooks.h"
#include "agent/probe/probe_sites.h"
#include "agent/x86/decode.h"

namespace classaccess {
namespace {

// How control leaves an instruction.
enum class Flow { kNext, kCondJump, kJump, kCall, kEnds, kUnfit };

struct Step {
  Instruction in;
  Flow flow = Flow::kNext;
  bool has_target = false;
  uint64_t target = 0;  // kCondJump, kJump, kCall: direct ones
};

// The program's code as it is without probes.
class CodeCopy {
 public:
  CodeCopy(uint64_t begin, uint64_t end) : begin_(begin), bytes_(end > begin ? end - begin : 0) {
    if (bytes_.empty()) return;
    memcpy(bytes_.data(), reinterpret_cast<const void*>(begin), bytes_.size());
    g_probes.put_originals_back(begin, bytes_.data(), bytes_.size());
  }
  const uint8_t* at(uint64_t address) const { return bytes_.data() + (address - begin_); }
  uint64_t left(uint64_t address) const {
    return address - begin_ < bytes_.size() ? bytes_.size() - (address - begin_) : 0;
  }

 private:
  uint64_t begin_;
  std::vector<uint8_t> bytes_;
};

int64_t relative(const Instruction& in, int bytes) {
  if (bytes == 1) return static_cast<int8_t>(in.bytes[in.length - 1]);
  int32_t value;
  memcpy(&value, in.bytes + in.length - 4, 4);
  return value;
}

bool read_step(const CodeCopy& code, uint64_t at, Step* out) {
  if (code.left(at) == 0 || !decode(code.at(at), code.left(at), &out->in)) return false;
  const Instruction& in = out->in;
  auto direct = [&](Flow flow, int bytes) {
    out->flow = flow;
    out->has_target = true;
    out->target = at + in.length + static_cast<uint64_t>(relative(in, bytes));
  };
  if (in.encoding != Encoding::kLegacy) return true;
  const uint8_t op = in.opcode;
  if (in.map == OpcodeMap::k0F) {
    if (op >= 0x80 && op <= 0x8f) direct(Flow::kCondJump, 4);
    if (op == 0x0b || op == 0xff || op == 0xb9) out->flow = Flow::kEnds;  // ud2, ud0, ud1
    return true;
  }
  if (in.map != OpcodeMap::k1Byte) return true;
  if (op >= 0x70 && op <= 0x7f)
    direct(Flow::kCondJump, 1);
  else if (op >= 0xe0 && op <= 0xe3) {
    direct(Flow::kUnfit, 1);
  }  // loop, jrcxz: no form of 32 bits
  else if (op == 0xeb)
    direct(Flow::kJump, 1);
  else if (op == 0xe9)
    direct(Flow::kJump, 4);
  else if (op == 0xe8)
    direct(Flow::kCall, 4);
  else if (op == 0xc3 || op == 0xc2 || op == 0xcb || op == 0xca || op == 0xcf || op == 0xf4)
    out->flow = Flow::kEnds;
  else if (op == 0xcc || op == 0xcd || op == 0xf1)
    out->flow = Flow::kUnfit;
  else if (op == 0xff && in.has_modrm) {
    int form = in.modrm >> 3 & 7;
    if (form == 4 || form == 5) out->flow = Flow::kEnds;
    if (form == 2 || form == 3) out->flow = Flow::kCall;
  } else if ((op == 0xc7 || op == 0xc6) && in.has_modrm && in.modrm == 0xf8) {
    out->flow = Flow::kUnfit;  // xbegin, xabort
  }
  return true;
}

bool is_padding(const Instruction& in) {
  if (in.map == OpcodeMap::k1Byte) return in.opcode == 0x90 || in.opcode == 0xcc;
  return in.map == OpcodeMap::k0F && in.opcode == 0x1f;
}

// Whether code branches to [low, high), but for calls of `low`; "" or why it cannot be said. A branch to the entry
// itself (a loop, or a function that goes on with itself) may come with the red zone in use, which the stub would
// overwrite.
std::string look_for_branches(uint64_t begin, uint64_t end, uint64_t low, uint64_t high, const char* part) {
  const CodeCopy code(begin, end);
  for (uint64_t at = begin; at < end;) {
    Step step;
    if (!read_step(code, at, &step)) return std::string(part) + "its code cannot be decoded to its end";
    const bool is_call = step.flow == Flow::kCall && step.target == low;
    if (step.has_target && !is_call && step.target >= low && step.target < high) {
      return std::string(part) + "branches back into its first bytes";
    }
    at += step.in.length;
  }
  return "";
}

int disp32_offset(const Instruction& in) {
  int found = -1;
  for (int immediate : {0, 1, 2, 4}) {
    int at = in.length - 4 - immediate;
    int32_t value;
    if (at < 2 || in.bytes[at - 1] != in.modrm) continue;
    memcpy(&value, in.bytes + at, 4);
    if (value != in.displacement) continue;
    if (found >= 0) return -1;
    found = at;
  }
  return found;
}

bool fits(int64_t value) { return value == static_cast<int32_t>(value); }

}  // namespace

std::string plan_prologue(const FunctionCode& function, Prologue* out) {
  uint64_t at = function.entry;
  constexpr uint64_t kMost = 64;
  const CodeCopy code(at, function.limit - at < kMost ? function.limit : at + kMost);
  if (code.left(at) >= 4 && memcmp(code.at(at), "\xf3\x0f\x1e\xfa", 4) == 0) at += 4;
  *out = Prologue();
  out->patch = at;
  bool ended = false;
  while (at < out->patch + kJumpBytes) {
    Step step;
    if (!read_step(code, at, &step)) {
      return at >= function.limit ? "shorter than a jump, and another function follows at once"
                                  : "its first bytes cannot be decoded";
    }
    const auto offset = static_cast<uint8_t>(at - out->patch);
    if (offset > 0) out->inner_starts |= 1u << offset;
    if (ended) {
      // What lies behind the end of a short function may only fill up.
      if (!is_padding(step.in)) return "shorter than a jump, and followed by other code";
      at += step.in.length;
      continue;
    }
    if (step.flow == Flow::kUnfit) return "an instruction at its start cannot be moved";
    const bool calls_itself = step.flow == Flow::kCall && step.target == function.entry;
    if (step.has_target && !calls_itself && step.target >= function.entry && step.target < out->patch + kJumpBytes) {
      return "branches back into its first bytes";
    }
    if (step.flow == Flow::kCall && !step.has_target) return "an indirect call in its first bytes";
    if (step.in.base == kRip && disp32_offset(step.in) < 0) return "an instruction at its start cannot be moved";
    out->items.push_back({offset, step.in.length, 0});
    at += step.in.length;
    if (step.flow == Flow::kCall && at < out->patch + kJumpBytes) return "a call inside its first bytes";
    if (step.flow == Flow::kEnds || step.flow == Flow::kJump) ended = true;
  }
  const uint64_t moved = at - out->patch;
  if (moved > sizeof(out->original)) return "an instruction at its start cannot be moved";
  if (at > function.limit) return "shorter than a jump, and another function follows at once";
  out->moved = static_cast<uint8_t>(moved);
  memcpy(out->original, code.at(out->patch), moved);
  // A branch to an instruction that has moved would meet the jump's bytes.
  uint64_t high = out->patch + kJumpBytes;
  uint64_t end = function.size != 0 ? function.entry + function.size : function.limit;
  if (end > at && !ended) {
    std::string why = look_for_branches(at, end, function.entry, high, "");
    if (!why.empty()) return why;
  }
  for (const auto& [low, to] : function.parts) {
    std::string why = look_for_branches(low, to, function.entry, high, "a part of it that lies apart: ");
    if (!why.empty()) return why;
  }
  return "";
}

bool branches_at(uint64_t start, uint64_t at, uint64_t low, uint64_t high) {
  constexpr uint64_t kLongest = 16;
  const CodeCopy code(start, at + kLongest);
  while (start <= at) {
    Step step;
    if (!read_step(code, start, &step)) return true;
    if (start + step.in.length > at) return step.has_target && step.target >= low && step.target < high;
    start += step.in.length;
  }
  return false;
}

size_t write_copy(Prologue* prologue, uint64_t at, uint8_t* to) {
  size_t length = 0;
  bool ended = false, reachable = true;
  auto put = [&](const void* bytes, size_t count) {
    memcpy(to + length, bytes, count);
    length += count;
  };
  auto put_byte = [&](uint8_t byte) { to[length++] = byte; };
  auto put_32 = [&](uint64_t value) {
    auto word = static_cast<uint32_t>(value);
    put(&word, 4);
  };
  // The displacement that ends an instruction.
  auto put_target = [&](uint64_t target) {
    auto distance = static_cast<int64_t>(target - (at + length + 4));
    reachable &= fits(distance);
    put_32(static_cast<uint64_t>(distance));
  };
  for (Prologue::Item& item : prologue->items) {
    Step step;
    uint64_t original = prologue->patch + item.from;
    Instruction& in = step.in;
    // From the saved bytes: the code may be patched by now.
    if (!decode(prologue->original + item.from, item.length, &in)) return 0;
    item.to = static_cast<uint8_t>(length);
    uint8_t bytes[15];
    memcpy(bytes, in.bytes, in.length);
    const uint8_t op = in.opcode;
    const bool one = in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k1Byte;
    const bool two = in.encoding == Encoding::kLegacy && in.map == OpcodeMap::k0F;
    const uint64_t next = original + in.length;
    if (one && ((op >= 0x70 && op <= 0x7f) || op == 0xeb || op == 0xe9 || op == 0xe8)) {
      const int width = op == 0xe9 || op == 0xe8 ? 4 : 1;
      const uint64_t target = next + static_cast<uint64_t>(relative(in, width));
      if (op == 0xe8) {
        // As the call would: its own return address is on the stack.
        put_byte(0x68);
        put_32(next);
        put("\xc7\x44\x24\x04", 4);
        put_32(next >> 32);
        put_byte(0xe9);
        ended = true;
      } else if (width == 4 || op == 0xeb) {
        put_byte(0xe9);
        ended = true;
      } else {
        put_byte(0x0f);
        put_byte(static_cast<uint8_t>(op + 0x10));
      }
      put_target(target);
      continue;
    }
    if (two && op >= 0x80 && op <= 0x8f) {
      put_byte(0x0f);
      put_byte(op);
      put_target(next + static_cast<uint64_t>(relative(in, 4)));
      continue;
    }
    if (in.base == kRip && in.has_memory) {
      int where = disp32_offset(in);
      if (where < 0) return 0;
      auto distance = static_cast<int64_t>(next + static_cast<uint64_t>(in.displacement) - (at + length + in.length));
      reachable &= fits(distance);
      auto word = static_cast<int32_t>(distance);
      memcpy(bytes + where, &word, 4);
    }
    put(bytes, in.length);
    if (one && (op == 0xc3 || op == 0xc2 || (op == 0xff && (in.modrm >> 3 & 6) == 4))) ended = true;
  }
  if (!ended) {
    put_byte(0xe9);
    put_target(prologue->patch + prologue->moved);
  }
  return reachable ? length : 0;
}

}  // namespace classaccess
